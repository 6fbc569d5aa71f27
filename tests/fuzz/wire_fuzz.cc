// Any bytes as the payload of any message, which the first byte picks: refused, or exactly what
// encode() makes of the decoded message.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "wire/codec.h"

namespace {

template <class Message>
void decode_and_encode(std::string_view payload) {
  const auto message = wire::decode<Message>(payload);
  const bool is_right =
      message ? wire::encode(*message) == payload : message.error().code == EBADMSG;
  if (!is_right) std::abort();
}

void decode_and_encode_header(std::string_view bytes) {
  const auto header = wire::decode_header(bytes);
  if (header && !bytes.starts_with(wire::encode_header(*header))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr void (*kMessages[])(std::string_view) = {
#define AIRLOCK_ROW(Message, name) decode_and_encode<wire::Message>,
      AIRLOCK_MESSAGES(AIRLOCK_ROW)
#undef AIRLOCK_ROW
          decode_and_encode_header};
  if (size == 0) return 0;
  kMessages[data[0] % std::size(kMessages)]({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
