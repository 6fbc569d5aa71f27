#include "ctl/http.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace ctl {

using base::Result;

namespace {

constexpr std::size_t kLargestHead = 64u << 10;
constexpr std::size_t kLargestBody = 64u << 20;
constexpr std::size_t kBlock = 64u << 10;

base::Result<void> broken() { return base::failure("read the API's answer", EPROTO); }

std::size_t number_in(const std::string& text, int base, bool& is_number) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, base);
  is_number = read.ec == std::errc() && read.ptr != text.data();
  return number;
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
  bool is_number = false;
  if (!first->starts_with("HTTP/1.1 ")) return broken();
  status_ = static_cast<unsigned>(number_in(first->substr(9, 3), 10, is_number));
  if (!is_number) return broken();
  for (;;) {
    auto line = take_line();
    if (!line) return tl::unexpected<base::Error>(line.error());
    if (line->empty()) break;
    const auto colon = line->find(':');
    if (colon == std::string::npos || headers_.size() > 100) return broken();
    std::string name = line->substr(0, colon);
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    const auto value = line->find_first_not_of(' ', colon + 1);
    headers_[name] = value == std::string::npos ? "" : line->substr(value);
  }
  is_chunked_ = header("transfer-encoding") == "chunked";
  left_ = number_in(header("content-length"), 10, has_length_);
  is_over_ = status_ == 204 || (has_length_ && left_ == 0);
  return {};
}

bool HttpAnswer::has_more() const {
  if (is_over_ || !is_chunked_ || left_ > 0) return is_over_ || !bytes_.empty();
  // The end of the chunk before, and the size of the next one.
  const std::size_t start = is_first_chunk_ ? 0 : 2;
  return bytes_.size() > start && bytes_.find("\r\n", start) != std::string::npos;
}

Result<void> HttpAnswer::next_chunk() {
  if (!std::exchange(is_first_chunk_, false)) {
    auto end = take_line();  // of the last one
    if (!end) return tl::unexpected<base::Error>(end.error());
  }
  auto line = take_line();
  if (!line) return tl::unexpected<base::Error>(line.error());
  bool is_number = false;
  left_ = number_in(*line, 16, is_number);
  if (!is_number) return broken();
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
