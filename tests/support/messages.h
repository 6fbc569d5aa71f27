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
  state.child_subreaper = true;
  state.parent_death_signal = 9;
  state.timer_slack_ns = 50'000;
  state.scheduler = 3;
  state.timers = {{0, 1'500'000, 0}, {2, 1, kMax<std::uint64_t>}};
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
  request.policy = {"user", wire::EnvMode::context, true, true, kMax<std::uint64_t>,
                    1,      {"shell", true, true}};
  request.terminal_fds = {3, kMax<std::uint32_t>};
  request.termios = std::string("\0\x03", 2);
  request.foreground = true;
  request.caught_by = wire::CaughtBy::ptrace;
  request.script = "/work/run.sh";
  request.is_service = true;
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
  setup.protect = {"/usr/lib/node_modules/agent"};
  setup.own_uid = 59123;
  setup.is_platform = true;
  setup.with_farm = true;
  setup.with_route = true;
  setup.pid_max = 400;
  setup.tmpfs_bytes = kMax<std::uint64_t>;
  setup.upper_dir = "/run/airlock/upper/user";
  setup.upper_in_memory = true;
  setup.watched = {"/usr/bin"};
  setup.same = {"/tmp", "/workspace"};
  setup.private_tmp = true;
  setup.no_new_privs = true;
  setup.refused_calls = 2;
  setup.reports_jobs = true;
  setup.first_id = 0x70000000;
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
inline wire::Queued full() {
  return {kMax<std::uint64_t>};
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
  return {kMin<std::int32_t>,
          1,
          kMax<std::uint64_t>,
          3,
          true,
          {wire::ShellEngine::command,
           wire::ShellEvent::lost,
           "why",
           "/folder",
           {"NAME"},
           {1, kMax<std::uint32_t>}}};
}
template <>
inline wire::ShellUpdate full() {
  return {{"A=1", "B="}, {"C"}, "/folder"};
}
template <>
inline wire::ShellOrder full() {
  return {kMax<std::uint64_t>, wire::ShellOrder::Action::reset};
}
template <>
inline wire::ShellState full() {
  return {1,      wire::ShellEngine::command, kMin<std::int32_t>,  "/folder",
          {1, 2}, {{1, 2, 3, "program"}},     kMax<std::uint32_t>, 5};
}
template <>
inline wire::NotStarted full() {
  return {127, 2, std::string("a\0b", 3), true};
}
template <>
inline wire::RunHere full() {
  return {"/usr/bin/node", {"LD_PRELOAD=/x.so", "A=1"}, -1, true};
}
template <>
inline wire::RunAgain full() {
  return {"/run/airlock/airlock-stub", 1, kMax<std::uint64_t>};
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
inline wire::GiveTerminal full() {
  return {};
}
template <>
inline wire::TerminalGiven full() {
  return {};
}
template <>
inline wire::Resume full() {
  return {true};
}
template <>
inline wire::Typed full() {
  return {kMin<std::int32_t>};
}
template <>
inline wire::Interrupted full() {
  return {3};
}
template <>
inline wire::Setup full() {
  return full_setup();
}
template <>
inline wire::Ready full() {
  return {-1, "mount proc", {"no mqueue", ""}, "no tmpfs", "no knob", true};
}
template <>
inline wire::Walls full() {
  return {"no 6.7", "no ptrace"};
}
template <>
inline wire::Spawn full() {
  return {kMax<std::uint64_t>,
          full_request(),
          {255,
           {"/usr/bin", "/opt/bin"},
           {"0", "7"},
           {"/usr/bin/agent"},
           "/run/p",
           true,
           true,
           "/run/airlock/airlock-stub"}};
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
inline wire::JobRefused full() {
  return {7, {127, 2, "why", false}};
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
inline wire::KeptExec full() {
  return {"key", "{}", {"job", "stdout"}, std::string("\0\xff", 2)};
}
template <>
inline wire::KeepNote full() {
  return {"a key", "a note", {"tty"}};
}
template <>
inline wire::Attach full() {
  return {"key 1"};
}
template <>
inline wire::Attached full() {
  return {"key 2", "note", {"job", "stdin"}};
}
template <>
inline wire::Release full() {
  return {"key 3", "stdin"};
}
template <>
inline wire::PortRequest full() {
  return {kMax<std::uint16_t>, wire::PortProtocol::udp, std::string("\x7f\0\0\1", 4)};
}
template <>
inline wire::PortGrant full() {
  return {kMin<std::int32_t>};
}

template <>
inline wire::ApiConnection full() {
  return {"user"};
}

template <>
inline wire::JobEnded full() {
  return {kMax<std::uint64_t>, -1, 1, 2, 3, true};
}

template <>
inline wire::FileJob full() {
  return {"user", "/folder", kMax<std::uint32_t>, wire::OnDisconnect::keep};
}
template <>
inline wire::FileRequest full() {
  return {wire::FileRequest::Operation::set_mode,
          "a\xff",
          "to",
          true,
          07777,
          true,
          true,
          true,
          true,
          kMax<std::uint32_t>,
          {"\"1-2-3\"", "*"},
          {"tag"}};
}
template <>
inline wire::FileReady full() {
  return {true};
}
template <>
inline wire::FileEntry full() {
  return {wire::FileType::other,
          "name\xff",
          "target",
          kMax<std::uint64_t>,
          07777,
          1,
          2,
          kMin<std::int64_t>,
          kMax<std::uint64_t> - 1};
}
template <>
inline wire::FileHead full() {
  return {full<wire::FileEntry>(), true, kMax<std::uint64_t>};
}
template <>
inline wire::FileRange full() {
  return {kMax<std::uint64_t>, 1};
}
template <>
inline wire::FileData full() {
  return {std::string("a\0\xff", 3)};
}
template <>
inline wire::FileEnd full() {
  return {true};
}
template <>
inline wire::FileFailed full() {
  return {wire::FileFailed::Why::not_a_file, kMin<std::int32_t>};
}

}  // namespace support
