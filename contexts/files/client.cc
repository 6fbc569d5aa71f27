#include "contexts/files/client.h"

namespace contexts::files {

std::optional<wire::Frame> Client::next() {
  if (is_gone_) return std::nullopt;
  auto frame = receiver_.receive(socket_);
  if (frame && *frame) return std::move(**frame);
  is_gone_ = true;
  return std::nullopt;
}

}  // namespace contexts::files
