// Any bytes as a WebSocket message of a client, in both framings, and as the header and the body
// by which one is asked for. (The frames below are Beast's.)

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/channels.h"
#include "api/exec_order.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto framing : {api::Framing::airlock, api::Framing::kubernetes}) {
    const auto message = api::read_message(framing, bytes);
    if (!message) continue;
    using Kind = api::ClientMessage::Kind;
    if (message->kind == Kind::input && message->bytes.size() + 1 != size) std::abort();
    if (message->kind == Kind::signal && (message->signal < 1 || message->signal > 64)) {
      std::abort();
    }
    if (message->kind == Kind::resize && (message->size.rows == 0 || message->size.columns == 0)) {
      std::abort();
    }
  }
  const auto offered = api::read_subprotocols(bytes);
  if (offered.framing.has_value() == offered.name.empty()) std::abort();
  const auto body = nlohmann::json::parse(bytes, nullptr, false);
  if (body.is_object()) {
    const auto order = api::read_terminal_order(body, "bash");
    if (order && !order->exec.terminal) std::abort();
  }
  return 0;
}
