#include "api/channels.h"

#include <signal.h>
#include <string.h>

#include <nlohmann/json.hpp>

#include "api/http.h"
#include "api/text.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestJson = 1024;
constexpr std::size_t kDeepestJson = 4;
constexpr unsigned kLargestSize = 4096;  // rows or columns
constexpr std::string_view kBearer = "base64url.bearer.authorization.k8s.io.";

tl::unexpected<base::Error> wrong(const char* why) { return base::failure(why, EBADMSG); }

/// Null if it is not an object.
json read_object(std::string_view text) {
  if (text.size() > kLongestJson || is_deeper_than(text, kDeepestJson)) return nullptr;
  json object = json::parse(text, nullptr, false);
  return object.is_object() ? object : json();
}

std::optional<std::uint16_t> read_size(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<std::uint64_t>();
  if (number < 1 || number > kLargestSize) return std::nullopt;
  return static_cast<std::uint16_t>(number);
}

base::Result<ClientMessage> read_resize(Framing framing, std::string_view text) {
  const bool is_ours = framing == Framing::airlock;
  const json object = read_object(text);
  if (object.is_null()) return wrong("resize: expected an object");
  const auto columns = read_size(object, is_ours ? "cols" : "Width");
  const auto rows = read_size(object, is_ours ? "rows" : "Height");
  ClientMessage message;
  if (columns && rows) {
    message.kind = ClientMessage::Kind::resize;
    message.size = {*rows, *columns, 0, 0};
    return message;
  }
  // kubectl tells 0 by 0 when it does not know.
  if (!is_ours) return message;
  return wrong("resize: expected cols and rows, 1 to 4096");
}

base::Result<ClientMessage> read_signal(std::string_view text) {
  const json object = read_object(text);
  if (object.is_null()) return wrong("signal: expected an object");
  const auto number = signal_number(object.value("signal", json()));
  const json scope = object.value("scope", json("group"));
  if (!number) return wrong("signal: expected a name such as SIGTERM, or 1 to 64");
  if (scope != "group" && scope != "leader") return wrong("signal: expected a scope");
  ClientMessage message;
  message.kind = ClientMessage::Kind::signal;
  message.signal = *number;
  if (scope == "leader") message.scope = wire::KillScope::process;
  return message;
}

std::optional<std::string> from_base64url(std::string_view text) {
  std::string padded(text);
  for (char& c : padded) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (padded.size() % 4 != 0) padded.push_back('=');
  return from_base64(padded);
}

}  // namespace

std::optional<int> signal_number(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number >= 1 && number <= 64 ? std::optional<int>(static_cast<int>(number))
                                       : std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  const std::string wanted = text.starts_with("SIG") ? text.substr(3) : text;
  for (int number = 1; number < NSIG; ++number) {
    const char* name = ::sigabbrev_np(number);
    if (name != nullptr && wanted == name) return number;
  }
  return std::nullopt;
}

base::Result<ClientMessage> read_message(Framing framing, std::string_view message) {
  if (message.empty()) return wrong("a message without a channel");
  if (message.size() > kLongestMessage) return wrong("the message is too long");
  const auto channel = static_cast<Channel>(static_cast<unsigned char>(message.front()));
  message.remove_prefix(1);
  ClientMessage read;
  switch (channel) {
    case Channel::input:
      read.kind = ClientMessage::Kind::input;
      read.bytes = message;
      return read;
    case Channel::resize:
      return read_resize(framing, message);
    case Channel::signal:
      if (framing == Framing::airlock) return read_signal(message);
      return wrong("there is no such channel");
    case Channel::close:
      if (message.size() != 1) return wrong("close: expected one channel");
      // Clients of Kubernetes also close channels they only read.
      if (message.front() == '\0') read.kind = ClientMessage::Kind::end_of_input;
      return read;
    default:
      return wrong("there is no such channel to write to");
  }
}

std::string output_message(Framing framing, Channel channel, std::uint64_t offset,
                           std::string_view bytes) {
  std::string message;
  message.reserve(9 + bytes.size());
  message.push_back(static_cast<char>(channel));
  if (framing == Framing::airlock) {
    for (int shift = 56; shift >= 0; shift -= 8) {
      message.push_back(static_cast<char>(offset >> shift & 0xff));
    }
  }
  message += bytes;
  return message;
}

std::string status_message(const json& status) {
  return std::string(1, static_cast<char>(Channel::status)) + to_text(status);
}

json kubernetes_status(const ExecFacts& facts) {
  json status = {{"metadata", json::object()}, {"status", "Success"}};
  const auto code = exit_status(facts);
  if (code == 0) return status;
  status["status"] = "Failure";
  if (!code) {
    status["reason"] = "InternalError";
    status["message"] = "its context has ended";
    status["code"] = 500;
    return status;
  }
  status["reason"] = "NonZeroExitCode";
  status["message"] = "command terminated with non-zero exit code: " + std::to_string(*code);
  status["details"]["causes"] = {{{"reason", "ExitCode"}, {"message", std::to_string(*code)}}};
  return status;
}

Subprotocols read_subprotocols(std::string_view header) {
  Subprotocols read;
  while (!header.empty()) {
    const auto end = std::min(header.find(','), header.size());
    std::string_view name = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (name.starts_with(kBearer)) {
      read.secret = from_base64url(name.substr(kBearer.size())).value_or("");
    } else if (!read.framing) {
      if (name == "airlock.v1") read.framing = Framing::airlock;
      if (name == "v5.channel.k8s.io" || name == "v4.channel.k8s.io") {
        read.framing = Framing::kubernetes;
      }
      if (read.framing) read.name = name;
    }
  }
  return read;
}

}  // namespace api
