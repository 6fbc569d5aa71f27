#include "base/sha256.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/hex.h"

using base::hex;

// FIPS 180-4 examples, and what sha256sum(1) says around the size of a block.
TEST_CASE("SHA-256 is what the standard says", "[base]") {
  CHECK(hex(base::sha256("")) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(base::sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(base::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(base::sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(hex(base::sha256(std::string(55, 'x'))) ==
        "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(hex(base::sha256(std::string(56, 'x'))) ==
        "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(hex(base::sha256(std::string(64, 'x'))) ==
        "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

TEST_CASE("hashes are equal or not", "[base]") {
  auto a = base::sha256("a");
  CHECK(base::is_equal_in_constant_time(a, base::sha256("a")));
  a[31] ^= 1;
  CHECK_FALSE(base::is_equal_in_constant_time(a, base::sha256("a")));
}
