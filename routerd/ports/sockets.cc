#include "routerd/ports/sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <boost/asio/ip/udp.hpp>
#include <cstring>
#include <functional>

#include "base/unique_fd.h"

namespace routerd::ports {

namespace ip = boost::asio::ip;

namespace {

// The kernel answers inside sendto(2); this is for one that does not answer at all.
constexpr timeval kAnswerTime{1, 0};

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 body{};
};

Question question(int family) {
  Question asked;
  asked.header.nlmsg_len = sizeof asked;
  asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  asked.header.nlmsg_flags = NLM_F_REQUEST;
  asked.body.sdiag_family = static_cast<std::uint8_t>(family);
  asked.body.sdiag_protocol = IPPROTO_TCP;
  asked.body.idiag_states = ~0u;
  asked.body.id.idiag_cookie[0] = asked.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return asked;
}

void set_address(__be32 (&field)[4], const ip::address& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    std::memcpy(field, bytes.data(), bytes.size());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::memcpy(field, bytes.data(), bytes.size());
  }
}

ip::address address_in(const __be32 (&field)[4], int family) {
  if (family == AF_INET) {
    ip::address_v4::bytes_type bytes;
    std::memcpy(bytes.data(), field, bytes.size());
    return ip::address_v4(bytes);
  }
  ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), field, bytes.size());
  return plain(ip::address_v6(bytes));
}

/// Without the scope, which the kernel tells as an interface.
bool is_same(const ip::address& address, const ip::address& other) {
  if (address.is_v4() || other.is_v4()) return address == other;
  return address.to_v6().to_bytes() == other.to_v6().to_bytes();
}

std::uint64_t cgroup_in(const nlmsghdr* message) {
  const auto* attribute = reinterpret_cast<const rtattr*>(
      static_cast<const char*>(NLMSG_DATA(message)) + sizeof(inet_diag_msg));
  auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(inet_diag_msg)));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != INET_DIAG_CGROUP_ID) continue;
    std::uint64_t cgroup = 0;
    if (RTA_PAYLOAD(attribute) == sizeof cgroup)
      std::memcpy(&cgroup, RTA_DATA(attribute), sizeof cgroup);
    return cgroup;
  }
  return 0;
}

using OnSocket = std::function<void(const nlmsghdr*, const inet_diag_msg&)>;

/// Passes what one datagram has to `take`; true when nothing follows. An error that is ENOENT is an
/// answer without sockets.
base::Result<bool> read_answer(const char* bytes, std::size_t size, const OnSocket& take) {
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  for (auto left = static_cast<unsigned>(size); NLMSG_OK(message, left);
       message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE) return true;
    if (message->nlmsg_type == NLMSG_ERROR) {
      const int error = -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error;
      if (error == ENOENT) return true;
      return base::failure("ask for sockets", error);
    }
    if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        message->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) {
      continue;
    }
    take(message, *static_cast<const inet_diag_msg*>(NLMSG_DATA(message)));
    if ((message->nlmsg_flags & NLM_F_MULTI) == 0) return true;
  }
  return false;
}

base::Result<void> ask(const Question& asked, const OnSocket& take) {
  const base::UniqueFd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return base::os_error("ask for sockets");
  ::setsockopt(socket.borrow(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
  if (::send(socket.borrow(), &asked, sizeof asked, 0) != sizeof asked) {
    return base::os_error("ask for sockets");
  }
  alignas(nlmsghdr) char answer[32 * 1024];  // as the kernel fills at most
  for (;;) {
    const ssize_t got = ::recv(socket.borrow(), answer, sizeof answer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return base::os_error("ask for sockets");
    auto done = read_answer(answer, static_cast<std::size_t>(got), take);
    if (!done) return tl::unexpected<base::Error>(done.error());
    if (*done) return {};
  }
}

TcpSocket described(const nlmsghdr* message, const inet_diag_msg& told) {
  return {.local = {address_in(told.id.idiag_src, told.idiag_family), ntohs(told.id.idiag_sport)},
          .inode = told.idiag_inode,
          .uid = told.idiag_uid,
          .cgroup = cgroup_in(message)};
}

}  // namespace

ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

base::Result<std::optional<TcpSocket>> find_connected(const Endpoint& local,
                                                      const Endpoint& remote) {
  const auto from = plain(local.address());
  const auto to = plain(remote.address());
  Question asked = question(from.is_v4() ? AF_INET : AF_INET6);
  set_address(asked.body.id.idiag_src, from);
  set_address(asked.body.id.idiag_dst, to);
  asked.body.id.idiag_sport = htons(local.port());
  asked.body.id.idiag_dport = htons(remote.port());
  if (from.is_v6()) asked.body.id.idiag_if = from.to_v6().scope_id();
  std::optional<TcpSocket> found;
  auto done = ask(asked, [&](const nlmsghdr* message, const inet_diag_msg& told) {
    // Without one that is connected the kernel tells of one that listens there.
    const bool is_open = told.idiag_state == TCP_ESTABLISHED || told.idiag_state == TCP_FIN_WAIT1 ||
                         told.idiag_state == TCP_FIN_WAIT2;
    const bool is_it = is_open && told.id.idiag_sport == htons(local.port()) &&
                       told.id.idiag_dport == htons(remote.port()) &&
                       is_same(address_in(told.id.idiag_src, told.idiag_family), from) &&
                       is_same(address_in(told.id.idiag_dst, told.idiag_family), to);
    if (is_it) found = described(message, told);
  });
  if (!done) return tl::unexpected<base::Error>(done.error());
  return found;
}

base::Result<std::vector<TcpSocket>> listening() {
  std::vector<TcpSocket> found;
  for (const int family : {AF_INET, AF_INET6}) {
    Question asked = question(family);
    asked.header.nlmsg_flags |= NLM_F_DUMP;
    asked.body.idiag_states = 1u << TCP_LISTEN;
    auto done = ask(asked, [&found](const nlmsghdr* message, const inet_diag_msg& told) {
      found.push_back(described(message, told));
    });
    // A kernel without IPv6 answers ENOENT, which is no error.
    if (!done) return tl::unexpected<base::Error>(done.error());
  }
  return found;
}

// bind(2) asks the routing table, which knows more than the interfaces' addresses (AnyIP). Where
// ip_nonlocal_bind is set everything counts as local.
bool is_local(const ip::address& address) {
  const auto wanted = plain(address);
  const ip::udp::endpoint endpoint(wanted, 0);
  const base::UniqueFd socket(
      ::socket(endpoint.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!socket) return true;
  const int bound =
      ::bind(socket.borrow(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  return bound == 0 || errno != EADDRNOTAVAIL;
}

}  // namespace routerd::ports
