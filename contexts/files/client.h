#pragma once

#include <optional>

#include "contexts/files/outcome.h"
#include "wire/channel.h"

namespace contexts::files {

/// Who has asked for the operation. Everything blocks; a client that goes away is nobody to tell
/// anything, so what is sent then is lost, and next() is nothing.
class Client {
 public:
  /// Borrows the socket.
  explicit Client(int socket) : socket_(socket) {}

  template <class Message>
  void send(const Message& message) {
    if (!is_gone_ && !wire::send_message(socket_, message)) is_gone_ = true;
  }

  /// The next message; nothing: the client has gone, or does not speak this protocol.
  std::optional<wire::Frame> next();
  /// If it is a `Message`; else the client is taken for gone.
  template <class Message>
  std::optional<Message> next_as() {
    const auto frame = next();
    if (frame && frame->type == wire::type_of<Message>()) {
      if (auto message = wire::decode<Message>(frame->payload)) return std::move(*message);
    }
    is_gone_ = true;
    return std::nullopt;
  }

  bool is_gone() const { return is_gone_; }

 private:
  int socket_;
  wire::Receiver receiver_;
  bool is_gone_ = false;
};

}  // namespace contexts::files
