#include "routerd/ports/filter.h"

#include <linux/if_ether.h>

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace routerd::ports;
using namespace std::string_literals;

namespace {

/// What a filter sees of a packet.
struct Packet {
  std::uint32_t interface = 2;
  std::uint32_t mark = 0;
  std::string destination;  // 4 or 16 bytes
};

std::uint32_t load(const Packet& packet, std::uint32_t offset) {
  const auto ancillary = [](int what) { return static_cast<std::uint32_t>(SKF_AD_OFF + what); };
  if (offset == ancillary(SKF_AD_IFINDEX)) return packet.interface;
  if (offset == ancillary(SKF_AD_MARK)) return packet.mark;
  const bool is_ipv4 = packet.destination.size() == 4;
  if (offset == ancillary(SKF_AD_PROTOCOL)) return is_ipv4 ? ETH_P_IP : ETH_P_IPV6;
  const std::size_t at = offset - static_cast<std::uint32_t>(SKF_NET_OFF) - (is_ipv4 ? 16 : 24);
  if (at + 4 > packet.destination.size()) throw std::runtime_error("beyond the address");
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value = value << 8 | static_cast<unsigned char>(packet.destination[at + i]);
  }
  return value;
}

/// Runs a program as the kernel does (Documentation/networking/filter.rst); true: taken.
bool takes(const std::vector<sock_filter>& program, const Packet& packet) {
  if (program.empty()) return true;
  std::uint32_t a = 0;
  for (std::size_t pc = 0;; ++pc) {
    const sock_filter& at = program.at(pc);
    switch (at.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        a = load(packet, at.k);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= at.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        pc += a == at.k ? at.jt : at.jf;
        break;
      case BPF_RET | BPF_K:
        return at.k != 0;
      default:
        throw std::runtime_error("unknown instruction");
    }
  }
}

const std::string kLocal4("\x7f\0\0\1", 4), kLocalOther4("\x7f\1\2\3", 4), kAny4(4, '\0');
const std::string kHost4("\x0a\1\2\3", 4), kOther4("\x0a\1\2\4", 4);
const std::string kAny6(16, '\0'), kLocal6(std::string(15, '\0') + '\1');
const std::string kHost6("\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16),
    kOther6("\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2", 16);
const std::string kMapped(std::string(10, '\0') + "\xff\xff");

Exposure bound_to(std::initializer_list<std::string> addresses) {
  Exposure exposure;
  for (const auto& address : addresses) REQUIRE(exposure.add(address));
  return exposure;
}

}  // namespace

TEST_CASE("everywhere needs no filter", "[ports]") {
  CHECK(filter_for(Exposure::everywhere(), {}).empty());
  for (const auto& wildcard : {kAny4, kAny6, kMapped + kAny4}) {
    CHECK(filter_for(bound_to({wildcard}), {}).empty());
    CHECK(filter_for(bound_to({kLocal4, wildcard, kHost6}), {}).empty());
  }
}

TEST_CASE("loopback is its addresses over its interface, in both families", "[ports]") {
  const auto exposure = GENERATE(0, 1, 2, 3);
  const auto filter =
      filter_for(exposure == 0 ? Exposure::loopback()
                               : bound_to({exposure == 1   ? kLocal4
                                           : exposure == 2 ? kLocal6
                                                           : kMapped + kLocalOther4}),
                 {});
  for (const auto& address : {kLocal4, kLocalOther4, kLocal6}) {
    CHECK(takes(filter, {1, 0, address}));
    CHECK_FALSE(takes(filter, {2, 0, address}));  // route_localnet, or somebody's forgery
  }
  for (const auto& address : {kHost4, kHost6}) {
    CHECK_FALSE(takes(filter, {1, 0, address}));
    CHECK_FALSE(takes(filter, {2, 0, address}));
  }
}

TEST_CASE("an address is that address, over any interface", "[ports]") {
  const auto ipv4 = filter_for(bound_to({kHost4}), {});
  const auto ipv6 = filter_for(bound_to({kHost6}), {});
  for (const std::uint32_t interface : {1u, 2u}) {
    CHECK(takes(ipv4, {interface, 0, kHost4}));
    CHECK_FALSE(takes(ipv4, {interface, 0, kOther4}));
    CHECK_FALSE(takes(ipv4, {interface, 0, kLocal4}));
    CHECK_FALSE(takes(ipv4, {interface, 0, kHost6}));
    CHECK(takes(ipv6, {interface, 0, kHost6}));
    CHECK_FALSE(takes(ipv6, {interface, 0, kOther6}));
    CHECK_FALSE(takes(ipv6, {interface, 0, kHost4}));
  }
  CHECK(takes(filter_for(bound_to({kMapped + kHost4}), {}), {2, 0, kHost4}));
}

TEST_CASE("what is bound several times answers at each address", "[ports]") {
  const auto filter = filter_for(bound_to({kLocal4, kHost4, kHost6, kHost4}), {});
  CHECK(takes(filter, {1, 0, kLocal4}));
  CHECK(takes(filter, {2, 0, kHost4}));
  CHECK(takes(filter, {2, 0, kHost6}));
  CHECK_FALSE(takes(filter, {2, 0, kOther4}));
  CHECK_FALSE(takes(filter, {2, 0, kOther6}));
  CHECK_FALSE(takes(filter, {2, 0, kLocal4}));
}

TEST_CASE("nothing from here passes without the mark", "[ports]") {
  const Reach reach{false, 77};
  const auto filter = filter_for(Exposure::everywhere(), reach);
  CHECK(takes(filter, {2, 0, kHost4}));
  CHECK(takes(filter, {2, 0, kHost6}));
  CHECK_FALSE(takes(filter, {1, 0, kHost4}));
  CHECK_FALSE(takes(filter, {1, 76, kLocal6}));
  CHECK(takes(filter, {1, 77, kLocal4}));
  const auto limited = filter_for(bound_to({kHost4}), reach);
  CHECK(takes(limited, {2, 0, kHost4}));
  CHECK_FALSE(takes(limited, {2, 0, kOther4}));
  CHECK_FALSE(takes(limited, {1, 0, kHost4}));
}

TEST_CASE("what is no address is refused, and so are too many", "[ports]") {
  Exposure exposure;
  for (const auto& bytes : {""s, "\1"s, "\1\2\3\4\5"s, std::string(17, '\1')}) {
    CHECK_FALSE(exposure.add(bytes));
  }
  for (char i = 1; i <= 16; ++i) CHECK(exposure.add(std::string("\x0a\0\0", 3) + i));
  CHECK_FALSE(exposure.add(std::string("\x0a\0\1\1", 4)));
  CHECK(exposure.add(std::string("\x0a\0\0\1", 4)));  // known
  // The longest jump must fit a byte, and the program the kernel's limit.
  const auto filter = filter_for(exposure, {});
  CHECK(filter.size() < BPF_MAXINSNS);
  CHECK(takes(filter, {2, 0, std::string("\x0a\0\0\x10", 4)}));
  CHECK_FALSE(takes(filter, {2, 0, kHost4}));
}

TEST_CASE("nothing bound, nothing taken", "[ports]") {
  const auto filter = filter_for(Exposure(), {});
  CHECK_FALSE(takes(filter, {1, 0, kLocal4}));
}
