#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "wire/message.h"

// Messages in which every field has a value that is neither its default nor that of a neighbour, or
// the largest one there is: what a round trip loses or swaps shows.
namespace support {

template <class T>
constexpr T kMax = std::numeric_limits<T>::max();
template <class T>
constexpr T kMin = std::numeric_limits<T>::min();

inline wire::ProcessState full_state() {
  wire::ProcessState state;
  state.umask = kMax<std::uint32_t>;
  state.blocked_signals = kMax<std::uint64_t>;
  state.ignored_signals = 0x8000000000000001;
  state.pending_signals = 0x0123456789abcdef;
  state.nice = kMin<std::int32_t>;
  state.io_priority = kMax<std::int32_t>;
  state.oom_score_adj = -1000;
  state.personality = 0xdeadbeef;
  state.affinity = std::string("\0\xff\0\x01", 4);
  state.rlimits = {{0, 1, 2}, {kMax<std::uint32_t>, kMax<std::uint64_t>, 0}};
  state.session_leader = true;
  state.no_new_privs = true;
  return state;
}

inline wire::ExecRequest full_request() {
  wire::ExecRequest request;
  request.path = "/usr/bin/env";
  request.argv = {"", "-i", "A=B", "", "sp ace\n\xff"};
  request.env = {"PATH=/bin", "NOEQUALS", "", "A=1", "A=2", "=x"};
  request.cwd = "/work/\xf0\x9f\x92\xa5";
  request.fd_numbers = {0, 1, 2, 100, kMax<std::uint32_t>};
  request.search_path = true;
  request.state = full_state();
  request.credentials = {1, 2, {3, 4, kMax<std::uint32_t>}};
  request.tty = wire::TtyMode::fresh;
  request.tty_fd = 7;
  request.winsize = {1, 2, 3, kMax<std::uint16_t>};
  request.on_disconnect = wire::OnDisconnect::keep;
  request.on_stub_kill = wire::KillScope::process;
  request.policy = {"user", wire::EnvMode::context, true, true, kMax<std::uint64_t>, 1};
  return request;
}

inline wire::Setup full_setup() {
  wire::Setup setup;
  setup.tier = 255;
  setup.name = "user";
  setup.view_dir = "/run/airlock/view/user";
  setup.runtime_dir = "/run/airlock";
  setup.root_dir = "/run/airlock/root";
  setup.private_home = "/run/airlock/home/user";
  setup.home = "/root";
  setup.share = {"/root/.gitconfig", "/root/work"};
  setup.hide = {"/root/.ssh"};
  setup.capabilities = kMax<std::uint64_t>;
  setup.own_devpts = true;
  setup.protect_kernel_knobs = true;
  return setup;
}

/// One of each message, in one type.
template <class Message>
Message full();

template <>
inline wire::ExecRequest full() {
  return full_request();
}
template <>
inline wire::Started full() {
  return {kMax<std::uint64_t>, kMin<std::int32_t>};
}
template <>
inline wire::Stopped full() {
  return {20};
}
template <>
inline wire::Continued full() {
  return {};
}
template <>
inline wire::Exited full() {
  return {kMin<std::int32_t>, 1, kMax<std::uint64_t>, 3, true};
}
template <>
inline wire::NotStarted full() {
  return {127, 2, std::string("a\0b", 3)};
}
template <>
inline wire::RunHere full() {
  return {"/usr/bin/node", {"LD_PRELOAD=/x.so", "A=1"}};
}
template <>
inline wire::Signal full() {
  return {64, wire::KillScope::tree};
}
template <>
inline wire::Resize full() {
  return {{65535, 1, 2, 3}};
}
template <>
inline wire::Setup full() {
  return full_setup();
}
template <>
inline wire::Ready full() {
  return {-1, "mount proc", {"no mqueue", ""}};
}
template <>
inline wire::Spawn full() {
  return {kMax<std::uint64_t>, full_request()};
}
template <>
inline wire::SpawnFds full() {
  return {0x0102030405060708};
}
template <>
inline wire::ListJobs full() {
  return {kMax<std::uint64_t>};
}
template <>
inline wire::JobList full() {
  return {9, {{1, 2, 3, "/bin/a"}, {4, -5, kMax<std::uint64_t>, ""}}};
}
template <>
inline wire::SignalJob full() {
  return {0, {9, wire::KillScope::process}};
}
template <>
inline wire::Control full() {
  return {R"({"verb":"info"})"};
}
template <>
inline wire::ControlReply full() {
  return {R"({"ok":true})"};
}
template <>
inline wire::Event full() {
  return {"[1,2]"};
}
template <>
inline wire::Attach full() {
  return {1};
}
template <>
inline wire::Attached full() {
  return {2, {"job", "stdin"}};
}
template <>
inline wire::Release full() {
  return {3};
}

}  // namespace support
