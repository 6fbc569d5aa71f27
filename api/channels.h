#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "api/exec_result.h"
#include "base/result.h"
#include "wire/message.h"

// Messages on a WebSocket that is attached to an exec: the first byte is a channel. Pure.
namespace api {

/// Ours, or what Kubernetes speaks for `exec` (v5.channel.k8s.io; v4 lacks the end of input).
enum class Framing { airlock, kubernetes };

enum class Channel : unsigned char {
  input = 0,
  out = 1,
  err = 2,
  status = 3,
  resize = 4,
  signal = 5,  ///< ours only
  close = 255,
};

/// What a client wants.
struct ClientMessage {
  enum class Kind { nothing, input, end_of_input, resize, signal };
  Kind kind = Kind::nothing;
  std::string_view bytes;  ///< of the message that was read
  wire::Winsize size;
  int signal = 0;
  wire::KillScope scope = wire::KillScope::group;
};

/// Input in one message at most, and its channel; a longer one is refused before it is read.
constexpr std::size_t kLongestMessage = (256u << 10) + 1;

/// EBADMSG, with the reason as its operation: not a message of this framing.
base::Result<ClientMessage> read_message(Framing framing, std::string_view message);

/// Output; `offset` (of its first byte, in its stream) is told in our framing.
std::string output_message(Framing framing, Channel channel, std::uint64_t offset,
                           std::string_view bytes);
std::string status_message(const nlohmann::json& status);

/// How an exec ended, as Kubernetes tells it (metav1.Status).
nlohmann::json kubernetes_status(const ExecFacts& facts);

/// "SIGTERM", "TERM" or 15.
std::optional<int> signal_number(const nlohmann::json& value);

/// What a client offers in Sec-WebSocket-Protocol.
struct Subprotocols {
  std::optional<Framing> framing;
  std::string name;    ///< the one to answer with
  std::string secret;  ///< a bearer token: browsers cannot send Authorization
};
/// The first one we speak. Tokens come as Kubernetes takes them:
/// base64url.bearer.authorization.k8s.io.TOKEN, where TOKEN is base64url without padding.
Subprotocols read_subprotocols(std::string_view header);

}  // namespace api
