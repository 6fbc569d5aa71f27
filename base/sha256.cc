#include "base/sha256.h"

#include <sha2.h>

#include <cstddef>

namespace base {

Sha256 sha256(std::string_view bytes) {
  SHA2_CTX context;
  ::SHA256Init(&context);
  ::SHA256Update(&context, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  Sha256 sum{};
  ::SHA256Final(sum.data(), &context);
  return sum;
}

bool is_equal_in_constant_time(const Sha256& a, const Sha256& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace base
