#include "tests/bench/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <stdexcept>

#include "base/file.h"

namespace bench {
namespace {

constexpr std::size_t kBlock = 1u << 20;
constexpr std::size_t kTail = 16u << 10;
constexpr std::string_view kLastChunk = "\r\n0\r\n\r\n";
constexpr std::size_t kOffset = 8;  // of a message with output, behind its channel

[[noreturn]] void give_up(const std::string& what) { throw std::runtime_error(what); }

base::UniqueFd connect_to(std::uint16_t port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(socket.borrow(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.borrow(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up("cannot connect to the API");
  }
  return socket;
}

}  // namespace

HttpClient::HttpClient(std::uint16_t port, std::string token)
    : socket_(connect_to(port)), token_(std::move(token)), block_(kBlock, '\0') {}

std::string_view HttpClient::receive() {
  const ssize_t got = ::recv(socket_.borrow(), block_.data(), block_.size(), 0);
  if (got <= 0) give_up("the API has closed the connection");
  return std::string_view(block_).substr(0, static_cast<std::size_t>(got));
}

std::string HttpClient::request(std::string_view method, std::string_view path,
                                std::string_view body) {
  send_head(method, path, {}, body);
  const std::string head = read_head();
  if (!head.starts_with("HTTP/1.1 2")) give_up(head + buffer_);
  const auto length = head.find("Content-Length: ");
  if (length == std::string::npos) return {};
  return take(std::strtoul(head.c_str() + length + 16, nullptr, 10));
}

void HttpClient::send_head(std::string_view method, std::string_view path, std::string_view fields,
                           std::string_view body) {
  std::string text;
  text.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: localhost\r\n");
  text.append("Authorization: Bearer ").append(token_).append("\r\n").append(fields);
  if (!body.empty()) text += "Content-Type: application/json\r\n";
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  send_all(text.append(body));
}

std::string HttpClient::read_head() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) buffer_ += receive();
  return take(end + 4);
}

void HttpClient::begin_stream(std::string_view path, std::string_view accept,
                              std::string_view body) {
  send_head("POST", path, "Accept: " + std::string(accept) + "\r\n", body);
  const std::string head = read_head();
  if (!head.starts_with("HTTP/1.1 200")) give_up(head + buffer_);
  streamed_ = static_cast<double>(buffer_.size());
  tail_ = std::move(buffer_);
  buffer_.clear();
}

// Only sizes of chunks have CR in this stream, so its end is known without reading them.
bool HttpClient::read_some_of_stream() {
  if (tail_.ends_with(kLastChunk)) return false;
  std::string_view bytes = receive();
  streamed_ += static_cast<double>(bytes.size());
  if (bytes.size() > kTail) tail_.clear(), bytes.remove_prefix(bytes.size() - kTail);
  tail_ += bytes;
  if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  return true;
}

void HttpClient::send_all(std::string_view bytes) {
  if (!base::write_all(socket_.borrow(), bytes)) give_up("cannot write to the API");
}

std::string HttpClient::take(std::size_t size) {
  while (buffer_.size() < size) buffer_ += receive();
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

AttachedClient::AttachedClient(std::uint16_t port, std::string token, std::string_view path)
    : HttpClient(port, std::move(token)) {
  send_head("GET", path,
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: airlock.v1\r\n",
            {});
  const std::string head = read_head();
  if (!head.starts_with("HTTP/1.1 101")) give_up(head);
}

void AttachedClient::type(std::string_view bytes) {
  const auto size = static_cast<char>(0x80 | (bytes.size() + 1));  // 124 at most
  std::string frame{'\x82', size, '\0', '\0', '\0', '\0', '\0'};   // a mask of zeros; channel 0
  send_all(frame.append(bytes));
}

std::string AttachedClient::output() {
  for (;;) {
    std::string message = this->message();
    if (message.empty()) return {};
    if (message[0] == 1) return message.substr(1 + kOffset);
  }
}

/// Frames of the API's: whole messages, without a mask. Empty: it closes.
std::string AttachedClient::message() {
  for (;;) {
    const std::string head = take(2);
    std::size_t size = static_cast<unsigned char>(head[1]);
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (more > 0) {
      size = 0;
      for (const char byte : take(more)) size = size << 8 | static_cast<unsigned char>(byte);
    }
    std::string payload = take(size);
    if (head[0] == '\x82') return payload;
    if ((head[0] & 15) == 8) return {};
  }
}

}  // namespace bench
