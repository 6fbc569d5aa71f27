#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/string_list.h"

// The messages of the exec protocol, version 1. docs/PROTOCOL.md tells who sends what and when;
// wire/codec.h knows the bytes.
namespace wire {

enum class MessageType : std::uint16_t {
  // A requester (stub, CLI, API) and whoever runs its program.
  exec_request = 1,
  started = 2,
  stopped = 3,
  continued = 4,
  exited = 5,
  not_started = 6,
  run_here = 7,
  signal = 8,
  resize = 9,
  // routerd and a context's init.
  setup = 20,
  ready = 21,
  spawn = 22,
  list_jobs = 23,
  job_list = 24,
  signal_job = 25,
  spawn_fds = 26,
  // A client and routerd's control socket.
  control = 30,
  control_reply = 31,
  event = 32,
  // The job store (kept jobs).
  attach = 40,
  attached = 41,
  release = 42,
};

/// What happens to the program when its requester goes away.
enum class OnDisconnect : std::uint8_t { kill_group = 0, keep = 1 };
/// How much a SIGKILL of the stub kills.
enum class KillScope : std::uint8_t { group = 0, tree = 1, process = 2 };
/// Which terminal the program gets.
enum class TtyMode : std::uint8_t { none = 0, hand_over = 1, fresh = 2 };
/// Where env values come from: the requester's own composed by routerd, or exactly as sent.
enum class EnvMode : std::uint8_t { routed = 0, exact = 1, context = 2 };

struct Rlimit {
  std::uint32_t resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  bool operator==(const Rlimit&) const = default;
};

struct Winsize {
  std::uint16_t rows = 0, columns = 0, x_pixels = 0, y_pixels = 0;
  bool operator==(const Winsize&) const = default;
};

/// The process state that an exec keeps and that therefore travels (execve(2)). Signal sets have
/// signal N at bit N-1, as the kernel's sigset_t and /proc/PID/status.
struct ProcessState {
  std::uint32_t umask = 022;
  std::uint64_t blocked_signals = 0;
  std::uint64_t ignored_signals = 0;
  std::uint64_t pending_signals = 0;
  std::int32_t nice = 0;
  std::int32_t io_priority = 0;
  /// oom_score_adj(5): -1000…1000; kUnset when not read.
  std::int32_t oom_score_adj = kUnset;
  std::uint32_t personality = 0;
  /// CPU mask as sched_setaffinity(2) takes it; empty = leave.
  std::string affinity;
  std::vector<Rlimit> rlimits;
  bool session_leader = false;
  bool group_leader = false;
  bool no_new_privs = false;
  static constexpr std::int32_t kUnset = INT32_MIN;
  bool operator==(const ProcessState&) const = default;
};

struct Credentials {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  bool operator==(const Credentials&) const = default;
};

/// Overrides of the context's policy for one exec; only routerd's control socket may set them.
struct ExecPolicy {
  /// The context to run in; empty = routing decides.
  std::string context;
  EnvMode env = EnvMode::routed;
  /// Pass only descriptors 0, 1 and 2.
  bool stdio_only = false;
  /// Set when this program is an agent: its children are routed by this launch's settings.
  bool launch = false;
  /// Wall-clock limit in ms, 0 = none; then SIGTERM, `kill_grace_ms` later SIGKILL.
  std::uint64_t time_limit_ms = 0;
  std::uint64_t kill_grace_ms = 2000;
  bool operator==(const ExecPolicy&) const = default;
};

/// "Run this program": the one request for routed children, `airlock exec`, shells, terminals and
/// file operations.
struct ExecRequest {
  std::string path;
  StringList argv;
  StringList env;
  /// Absolute, entered in the context; empty = the requester's folder is gone.
  std::string cwd;
  /// The numbers the passed descriptors have in the program, in the order they are passed.
  std::vector<std::uint32_t> fd_numbers;
  /// Search a `path` without '/' in the PATH of `env` (and run a file without `#!` by /bin/sh),
  /// as execvp(3) does.
  bool search_path = false;
  ProcessState state;
  /// Who the program runs as. Filled in by routerd from the peer's credentials; what a requester
  /// sends here is ignored.
  Credentials credentials;
  TtyMode tty = TtyMode::none;
  /// The passed descriptor that is the terminal, when `tty` is hand_over.
  std::uint32_t tty_fd = 0;
  Winsize winsize;
  OnDisconnect on_disconnect = OnDisconnect::kill_group;
  KillScope on_stub_kill = KillScope::group;
  ExecPolicy policy;
  bool operator==(const ExecRequest&) const = default;
};

/// The program runs; pid is its number in the context.
struct Started {
  std::uint64_t job = 0;
  std::int32_t pid = 0;
  bool operator==(const Started&) const = default;
};

struct Stopped {
  std::int32_t signal = 0;
  bool operator==(const Stopped&) const = default;
};

struct Continued {
  bool operator==(const Continued&) const = default;
};

/// Times in microseconds, memory in KiB (getrusage(2)).
struct Exited {
  std::int32_t wait_status = 0;
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t max_rss_kib = 0;
  bool timed_out = false;
  bool operator==(const Exited&) const = default;
};

/// Nothing was run. exit_code is 126 (refused or could not be started) or 127 (not found).
struct NotStarted {
  std::int32_t exit_code = 126;
  /// errno of what failed, or 0 when a rule refused.
  std::int32_t error = 0;
  /// One line for a person, without "airlock: ".
  std::string message;
  bool operator==(const NotStarted&) const = default;
};

/// An agent's own re-exec: the stub execs `path` in place, with these env entries added.
struct RunHere {
  std::string path;
  StringList env;
  bool operator==(const RunHere&) const = default;
};

/// Send `signal` to the program, or to its process group.
struct Signal {
  std::int32_t signal = 0;
  KillScope scope = KillScope::group;
  bool operator==(const Signal&) const = default;
};

struct Resize {
  Winsize winsize;
  bool operator==(const Resize&) const = default;
};

/// How a context is built; routerd sends it once to a new init.
struct Setup {
  /// What the context is isolated by: see contexts::Tier.
  std::uint8_t tier = 0;
  std::string name;
  /// Mounted read-only at `runtime_dir`: stub, interposer, router socket; nothing else of routerd.
  std::string view_dir;
  std::string runtime_dir;
  /// An empty folder for the new root to be assembled at.
  std::string root_dir;
  /// Folder that replaces `home` in the context; empty = the context sees the same HOME.
  std::string private_home;
  std::string home;
  /// Paths below `home` that stay the platform's; folders covered by an empty one.
  StringList share;
  StringList hide;
  /// Capabilities the context's programs may have, bit N = capability N.
  std::uint64_t capabilities = 0;
  bool own_devpts = false;
  bool protect_kernel_knobs = false;
  bool operator==(const Setup&) const = default;
};

/// The context stands. Or, with error != 0, `step` failed and the init ends.
struct Ready {
  std::int32_t error = 0;
  std::string step;
  /// What this tier could not do here, one line each.
  StringList lacks;
  bool operator==(const Ready&) const = default;
};

/// routerd hands a job to an init; the descriptors are the connection to the requester, then those
/// of request.fd_numbers. Descriptors beyond one datagram came before in SpawnFds messages.
struct Spawn {
  std::uint64_t job = 0;
  ExecRequest request;
  bool operator==(const Spawn&) const = default;
};

struct SpawnFds {
  std::uint64_t job = 0;
  bool operator==(const SpawnFds&) const = default;
};

struct ListJobs {
  std::uint64_t serial = 0;
  bool operator==(const ListJobs&) const = default;
};

struct Job {
  std::uint64_t job = 0;
  std::int32_t pid = 0;
  std::uint64_t running_ms = 0;
  std::string program;
  bool operator==(const Job&) const = default;
};

struct JobList {
  std::uint64_t serial = 0;
  std::vector<Job> jobs;
  bool operator==(const JobList&) const = default;
};

/// Signal a job; job 0 = every job of the context.
struct SignalJob {
  std::uint64_t job = 0;
  Signal signal;
  bool operator==(const SignalJob&) const = default;
};

/// A control request or reply: a JSON document (docs/PROTOCOL.md lists the verbs).
struct Control {
  std::string json;
  bool operator==(const Control&) const = default;
};
struct ControlReply {
  std::string json;
  bool operator==(const ControlReply&) const = default;
};
struct Event {
  std::string json;
  bool operator==(const Event&) const = default;
};

/// Take up a kept job: routerd answers Attached with dups of its job socket and streams.
struct Attach {
  std::uint64_t job = 0;
  bool operator==(const Attach&) const = default;
};
struct Attached {
  std::uint64_t job = 0;
  /// What each passed descriptor is: "job", "stdin", "stdout", "stderr", "tty".
  StringList streams;
  bool operator==(const Attached&) const = default;
};
/// Forget a kept job and what it left.
struct Release {
  std::uint64_t job = 0;
  bool operator==(const Release&) const = default;
};

}  // namespace wire
