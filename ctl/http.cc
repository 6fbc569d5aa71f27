#include "ctl/http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace ctl {

using base::Result;

namespace {

constexpr std::size_t kLargestHead = 64u << 10;
constexpr std::size_t kLargestBody = 64u << 20;
constexpr std::size_t kBlock = 64u << 10;
constexpr std::size_t kMostHeaders = 100;

base::Result<void> broken() { return base::failure("read the API's answer", EPROTO); }

constexpr std::string_view kBlanks = " \t";

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text.remove_suffix(text.size() - std::min(text.find_last_not_of(kBlanks) + 1, text.size()));
  return text;
}

/// All of `text` as a number.
std::optional<std::size_t> number_in(std::string_view text, int base) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The size that a chunk begins with; what may follow it in the line is ignored (RFC 9112, 7.1.1).
std::optional<std::size_t> size_of_chunk(std::string_view line) {
  return number_in(without_blanks(line.substr(0, line.find(';'))), 16);
}

/// "HTTP/1.1 200 OK". No others than final ones: nothing was asked for that has one before it.
std::optional<std::size_t> status_in(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  if (!line.starts_with(kVersion)) return std::nullopt;
  line.remove_prefix(kVersion.size());
  if (line.size() > 3 && line[3] != ' ') return std::nullopt;
  const auto status = number_in(line.substr(0, 3), 10);
  return status && *status >= 200 ? status : std::nullopt;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return text;
}

std::string text_of(const HttpRequest& request) {
  std::string text = request.method + " " + request.path +
                     " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
                     std::to_string(request.body.size()) + "\r\n";
  for (const auto& line : request.headers) text += line + "\r\n";
  return text + "\r\n" + request.body;
}

/// EPIPE: nobody has read anything of it.
Result<void> send_all(int socket, std::string_view bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && sent > 0) return base::failure("ask the API", ECONNRESET);
    if (n < 0) return base::os_error("ask the API");
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Result<HttpAnswer> HttpAnswer::ask(base::UniqueFd connection, const HttpRequest& request) {
  HttpAnswer answer(std::move(connection));
  if (auto sent = send_all(answer.socket(), text_of(request)); !sent) {
    return tl::unexpected<base::Error>(sent.error());
  }
  if (auto read = answer.read_head(); !read) return tl::unexpected<base::Error>(read.error());
  return answer;
}

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers_.find(name);
  return found == headers_.end() ? "" : found->second;
}

/// Reads what has come; false at the end of the connection.
Result<bool> HttpAnswer::fill() {
  char block[kBlock];
  ssize_t got = -1;
  do {
    got = ::read(connection_.borrow(), block, sizeof block);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return base::os_error("read the API's answer");
  bytes_.append(block, static_cast<std::size_t>(got));
  return got > 0;
}

/// Without its end.
Result<std::string> HttpAnswer::take_line() {
  for (;;) {
    if (const auto end = bytes_.find("\r\n"); end != std::string::npos) {
      std::string line = bytes_.substr(0, end);
      bytes_.erase(0, end + 2);
      return line;
    }
    if (bytes_.size() > kLargestHead) return tl::unexpected<base::Error>(broken().error());
    const auto more = fill();
    if (!more) return tl::unexpected<base::Error>(more.error());
    if (!*more) return base::failure("read the API's answer", ECONNRESET);
  }
}

Result<void> HttpAnswer::read_head() {
  auto first = take_line();
  if (!first) return tl::unexpected<base::Error>(first.error());
  const auto status = status_in(*first);
  if (!status) return broken();
  status_ = static_cast<unsigned>(*status);
  for (;;) {
    auto line = take_line();
    if (!line) return tl::unexpected<base::Error>(line.error());
    if (line->empty()) return read_framing();
    if (auto taken = take_header(*line); !taken) return taken;
  }
}

Result<void> HttpAnswer::take_header(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos || colon == 0 || headers_.size() > kMostHeaders) return broken();
  std::string name = lower(line.substr(0, colon));
  // Where a body ends must not be told twice.
  const bool is_framing = name == "content-length" || name == "transfer-encoding";
  if (is_framing && headers_.contains(name)) return broken();
  headers_[std::move(name)] = without_blanks(std::string_view(line).substr(colon + 1));
  return {};
}

/// Where the body ends. Chunks count, whatever a length says (RFC 9112, 6.3).
Result<void> HttpAnswer::read_framing() {
  is_over_ = status_ == 204 || status_ == 304;
  if (headers_.contains("transfer-encoding")) {
    is_chunked_ = lower(header("transfer-encoding")) == "chunked";
    return is_chunked_ ? Result<void>() : broken();
  }
  if (!headers_.contains("content-length")) return {};
  const auto length = number_in(header("content-length"), 10);
  if (!length) return broken();
  has_length_ = true;
  left_ = *length;
  is_over_ |= left_ == 0;
  return {};
}

bool HttpAnswer::has_more() const {
  if (is_over_ || !is_chunked_ || left_ > 0) return is_over_ || !bytes_.empty();
  // The end of the chunk before, and the size of the next one.
  const std::size_t start = is_first_chunk_ ? 0 : 2;
  const auto end = bytes_.find("\r\n", start);
  if (bytes_.size() <= start || end == std::string::npos) return false;
  // Without a byte of it read_some() would wait for one. What is no chunk it refuses at once.
  const auto size = size_of_chunk(std::string_view(bytes_).substr(start, end - start));
  return !size || *size == 0 || bytes_.size() > end + 2;
}

Result<void> HttpAnswer::next_chunk() {
  if (!std::exchange(is_first_chunk_, false)) {
    auto end = take_line();  // of the last one
    if (!end) return tl::unexpected<base::Error>(end.error());
    if (!end->empty()) return broken();
  }
  auto line = take_line();
  if (!line) return tl::unexpected<base::Error>(line.error());
  const auto size = size_of_chunk(*line);
  if (!size) return broken();
  left_ = *size;
  is_over_ = left_ == 0;
  return {};
}

Result<std::string> HttpAnswer::read_some() {
  if (!is_over_ && is_chunked_ && left_ == 0) {
    if (auto next = next_chunk(); !next) return tl::unexpected<base::Error>(next.error());
  }
  if (is_over_) return std::string();
  if (bytes_.empty()) {
    const auto more = fill();
    if (!more) return tl::unexpected<base::Error>(more.error());
    if (!*more && (is_chunked_ || has_length_)) {
      return base::failure("read the API's answer", ECONNRESET);
    }
    if (!*more) return std::string();
  }
  const bool has_end = is_chunked_ || has_length_;
  std::string part = bytes_.substr(0, has_end ? left_ : std::string::npos);
  bytes_.erase(0, part.size());
  if (has_end) left_ -= part.size();
  if (!is_chunked_ && has_length_) is_over_ = left_ == 0;
  return part;
}

Result<std::string> HttpAnswer::read_all() {
  std::string body;
  for (;;) {
    auto part = read_some();
    if (!part) return part;
    if (part->empty()) return body;
    body += *part;
    if (body.size() > kLargestBody) return base::failure("read the API's answer", EMSGSIZE);
  }
}

}  // namespace ctl
