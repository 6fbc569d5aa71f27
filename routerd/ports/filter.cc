#include "routerd/ports/filter.h"

#include <linux/if_ether.h>

#include <algorithm>

namespace routerd::ports {
namespace {

constexpr std::uint32_t kLoopbackInterface = 1;  // in every network namespace
constexpr std::uint32_t kIpv4Destination = 16;   // offset in its header, RFC 791
constexpr std::uint32_t kIpv6Destination = 24;   // RFC 8200
constexpr std::uint32_t kIpv4 = ETH_P_IP;
constexpr std::uint32_t kIpv6 = ETH_P_IPV6;
constexpr std::size_t kMaxAddresses = 16;
constexpr std::string_view kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

std::uint32_t word(std::string_view bytes, std::size_t index) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(4 * index, 4)) {
    value = value << 8 | static_cast<unsigned char>(byte);
  }
  return value;
}

bool is_all_zero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) { return byte == 0; });
}

/// One alternative: a list of conditions, each a load and a comparison, that all must hold.
struct Condition {
  std::uint32_t offset;
  std::uint32_t mask;
  std::uint32_t value;
};
using Alternative = std::vector<Condition>;

constexpr std::uint32_t kNoMask = ~std::uint32_t{0};

std::uint32_t ancillary(int what) { return static_cast<std::uint32_t>(SKF_AD_OFF + what); }
std::uint32_t network(std::uint32_t offset) {
  return static_cast<std::uint32_t>(SKF_NET_OFF) + offset;
}

Alternative matches_address(std::string_view address) {
  const bool is_ipv4 = address.size() == 4;
  Alternative alternative = {{ancillary(SKF_AD_PROTOCOL), kNoMask, is_ipv4 ? kIpv4 : kIpv6}};
  const std::uint32_t start = is_ipv4 ? kIpv4Destination : kIpv6Destination;
  for (std::uint32_t i = 0; i < address.size() / 4; ++i) {
    alternative.push_back({network(start + 4 * i), kNoMask, word(address, i)});
  }
  return alternative;
}

void add_loopback(std::vector<Alternative>& alternatives) {
  const Condition interface { ancillary(SKF_AD_IFINDEX), kNoMask, kLoopbackInterface };
  const Condition is_ipv4{ancillary(SKF_AD_PROTOCOL), kNoMask, kIpv4};
  alternatives.push_back({interface, is_ipv4, {network(kIpv4Destination), 0xff000000, 0x7f000000}});
  alternatives.push_back(matches_address(std::string(15, '\0') + '\1'));
  alternatives.back().insert(alternatives.back().begin(), interface);
}

sock_filter instruction(unsigned code, std::uint32_t value, std::size_t if_true = 0,
                        std::size_t if_false = 0) {
  return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
          static_cast<std::uint8_t>(if_false), value};
}

constexpr unsigned kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr unsigned kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr unsigned kEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr unsigned kReturn = BPF_RET | BPF_K;
constexpr std::uint32_t kTake = ~std::uint32_t{0};
constexpr std::uint32_t kDrop = 0;

/// Takes the packet if all conditions hold, else goes on behind.
void append(std::vector<sock_filter>& program, const Alternative& alternative) {
  std::size_t length = 1;  // the return
  for (const auto& condition : alternative) length += condition.mask == kNoMask ? 2 : 3;
  const std::size_t end = program.size() + length;
  for (const auto& condition : alternative) {
    program.push_back(instruction(kLoad, condition.offset));
    if (condition.mask != kNoMask) program.push_back(instruction(kAnd, condition.mask));
    const std::size_t next = program.size() + 1;
    program.push_back(instruction(kEqual, condition.value, 0, end - next));
  }
  program.push_back(instruction(kReturn, kTake));
}

}  // namespace

Exposure Exposure::everywhere() {
  Exposure exposure;
  exposure.is_everywhere_ = true;
  return exposure;
}

Exposure Exposure::loopback() {
  Exposure exposure;
  exposure.has_loopback_ = true;
  return exposure;
}

bool Exposure::add(std::string_view address) {
  if (address.size() != 4 && address.size() != 16) return false;
  if (is_all_zero(address)) return is_everywhere_ = true;
  if (address.size() == 16 && address.starts_with(kMappedPrefix)) return add(address.substr(12));
  const bool is_ipv6_loopback =
      address.size() == 16 && is_all_zero(address.substr(0, 15)) && address.back() == 1;
  if (is_ipv6_loopback || (address.size() == 4 && address.front() == 127)) {
    return has_loopback_ = true;
  }
  if (std::ranges::find(addresses_, address) == addresses_.end()) {
    if (addresses_.size() >= kMaxAddresses) return false;
    addresses_.emplace_back(address);
  }
  return true;
}

std::vector<sock_filter> filter_for(const Exposure& exposure, const Reach& reach) {
  std::vector<sock_filter> program;
  if (exposure.is_everywhere_ && reach.from_here) return program;
  if (!reach.from_here) {
    program.push_back(instruction(kLoad, ancillary(SKF_AD_IFINDEX)));
    program.push_back(instruction(kEqual, kLoopbackInterface, 0, 3));
    program.push_back(instruction(kLoad, ancillary(SKF_AD_MARK)));
    program.push_back(instruction(kEqual, reach.mark, 1, 0));
    program.push_back(instruction(kReturn, kDrop));
  }
  if (exposure.is_everywhere_) {
    program.push_back(instruction(kReturn, kTake));
    return program;
  }
  std::vector<Alternative> alternatives;
  if (exposure.has_loopback_) add_loopback(alternatives);
  for (const auto& address : exposure.addresses_) alternatives.push_back(matches_address(address));
  for (const auto& alternative : alternatives) append(program, alternative);
  program.push_back(instruction(kReturn, kDrop));
  return program;
}

}  // namespace routerd::ports
