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
  give_terminal = 10,
  terminal_given = 11,
  resume = 12,
  typed = 13,
  interrupted = 14,
  // routerd and a context's init.
  setup = 20,
  ready = 21,
  spawn = 22,
  list_jobs = 23,
  job_list = 24,
  signal_job = 25,
  spawn_fds = 26,
  job_refused = 27,
  shell_update = 28,
  walls = 29,
  // A client and routerd's control socket.
  control = 30,
  control_reply = 31,
  event = 32,
  // routerd and the host of a shell.
  shell_order = 60,
  shell_state = 61,
  queued = 62,
  // The job store (kept jobs).
  attach = 40,
  attached = 41,
  release = 42,
  // A service's bind(2) and routerd (libairlock-bind).
  port_request = 50,
  port_grant = 51,
  // More of the job store.
  kept_exec = 70,
  keep_note = 71,
  // Files of a context: a client's request to routerd, then the client and airlock-files.
  file_job = 80,
  file_request = 81,
  file_ready = 82,
  file_entry = 83,
  file_head = 84,
  file_range = 85,
  file_data = 86,
  file_end = 87,
  file_failed = 88,
  // A context's init and the audit log.
  job_ended = 90,
  // routerd and the API: a program that came to its context's api.sock.
  api_connection = 91,
  // An agent's own program under binfmt.
  run_again = 100,
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

/// An interval timer that runs (setitimer(2)).
struct IntervalTimer {
  std::uint32_t which = 0;
  /// Microseconds until it expires, and its period (0 = once).
  std::uint64_t value_us = 0;
  std::uint64_t interval_us = 0;
  bool operator==(const IntervalTimer&) const = default;
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
  bool child_subreaper = false;
  /// PR_SET_PDEATHSIG, 0 = none.
  std::uint32_t parent_death_signal = 0;
  /// PR_SET_TIMERSLACK; 0 = not known.
  std::uint64_t timer_slack_ns = 0;
  /// sched(7): SCHED_OTHER, SCHED_BATCH or SCHED_IDLE; real-time policies do not travel.
  std::uint32_t scheduler = 0;
  std::vector<IntervalTimer> timers;
  static constexpr std::int32_t kUnset = INT32_MIN;
  bool operator==(const ProcessState&) const = default;
};

struct Credentials {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
  bool operator==(const Credentials&) const = default;
};

/// Runs a command in a persistent shell instead of a program of its own: argv is the command alone,
/// env holds for this command only, and so does cwd unless it is empty.
struct ShellPolicy {
  /// Empty: not in a shell.
  std::string name;
  /// Refuse with EBUSY instead of waiting for the commands before this one.
  bool fail_if_busy = false;
  /// No frozen copy: faster, but a command that ends the shell ends its state.
  bool no_checkpoint = false;
  bool operator==(const ShellPolicy&) const = default;
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
  ShellPolicy shell;
  bool operator==(const ExecPolicy&) const = default;
};

/// What turned an exec into a request; the values are those of contexts::Mechanism.
enum class CaughtBy : std::uint8_t { interposer = 0, farm = 1, binfmt = 2, ptrace = 3 };

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
  /// Number of the passed descriptor that is the requester's terminal, unless `tty` is none.
  std::uint32_t tty_fd = 0;
  Winsize winsize;
  OnDisconnect on_disconnect = OnDisconnect::kill_group;
  KillScope on_stub_kill = KillScope::group;
  ExecPolicy policy;
  /// When `tty` is fresh: numbers that get the new terminal; nothing is passed for them.
  std::vector<std::uint32_t> terminal_fds;
  /// Settings of the new terminal: a base::Termios, or empty for the kernel's.
  std::string termios;
  /// Whether the program starts in the foreground of the new terminal.
  bool foreground = false;
  CaughtBy caught_by = CaughtBy::interposer;
  /// The script whose interpreter `path` is, when the kernel has followed its `#!` line already.
  std::string script;
  /// A service of the configuration: its own pid is put into the entry LISTEN_PID of its
  /// environment (sd_listen_fds(3)), and what is left of its process group when it ends is killed.
  /// routerd's to set.
  bool is_service = false;
  bool operator==(const ExecRequest&) const = default;
};

/// The program runs; pid is its number in the context. If it has a fresh terminal, that one's
/// master travels along.
struct Started {
  std::uint64_t job = 0;
  std::int32_t pid = 0;
  bool operator==(const Started&) const = default;
};

/// A shell's command waits for those before it; Started comes whenever that is.
struct Queued {
  std::uint64_t job = 0;
  bool operator==(const Queued&) const = default;
};

struct Stopped {
  std::int32_t signal = 0;
  bool operator==(const Stopped&) const = default;
};

struct Continued {
  bool operator==(const Continued&) const = default;
};

/// What became of the shell that ran a command.
enum class ShellEvent : std::uint8_t {
  none = 0,
  /// The command ended the shell; a copy from before the command goes on.
  recovered = 1,
  /// The command ended the shell and there was no copy: the next command gets a fresh one.
  lost = 2,
};

/// What runs a shell's commands; the lower ones where the higher do not fit the context's bash.
enum class ShellEngine : std::uint8_t {
  /// Not known (yet).
  none = 0,
  /// bash with airlock's builtin: state survives what ends the shell.
  builtin = 1,
  /// A loop in plain bash: state stays until a command ends the shell.
  loop = 2,
  /// `sh -c` for each command: no state stays.
  command = 3,
};

/// What a command in a persistent shell left behind.
struct ShellResult {
  ShellEngine engine = ShellEngine::none;
  ShellEvent event = ShellEvent::none;
  /// Why there was no copy, for a person; empty if there was one.
  std::string no_checkpoint;
  std::string cwd;
  /// Exported names that were set, changed or unset. Never values.
  StringList changed_env;
  /// Pids of background jobs that this command left running.
  std::vector<std::uint32_t> background;
  bool operator==(const ShellResult&) const = default;
};

/// Times in microseconds, memory in KiB (getrusage(2)).
struct Exited {
  std::int32_t wait_status = 0;
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t max_rss_kib = 0;
  bool timed_out = false;
  ShellResult shell;
  bool operator==(const Exited&) const = default;
};

/// Nothing was run. exit_code is 126 (refused or could not be started) or 127 (not found).
struct NotStarted {
  std::int32_t exit_code = 126;
  /// errno of what failed, or 0 when a rule refused.
  std::int32_t error = 0;
  /// One line for a person, without "airlock: ".
  std::string message;
  /// The message is on the program's stderr already.
  bool is_told = false;
  bool operator==(const NotStarted&) const = default;
};

/// An agent's own re-exec: the stub becomes the program, with these env entries added.
struct RunHere {
  std::string path;
  StringList env = {};
  /// The program itself, opened with O_PATH by routerd, if it came as the message's descriptor;
  /// else `path` is exec'ed. The receiver's, and no part of the payload.
  std::int32_t program_fd = -1;
  /// binfmt_misc would make the program a stub again: namespaces come over this connection in which
  /// it does not (RunAgain).
  bool in_own_namespaces = false;
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

/// No user or group id: (uid_t)-1 is nobody's (setresuid(2)).
constexpr std::uint32_t kNoId = ~std::uint32_t{0};

/// The requester shall give its controlling terminal up (TIOCNOTTY): the program is to lead a
/// session of it. Before Started.
struct GiveTerminal {
  bool operator==(const GiveTerminal&) const = default;
};
struct TerminalGiven {
  bool operator==(const TerminalGiven&) const = default;
};

/// Continue a program on a fresh terminal, in its foreground or its background.
struct Resume {
  bool foreground = false;
  bool operator==(const Resume&) const = default;
};

/// The requester is about to write the character that stands for `signal` (SIGINT or SIGQUIT) to
/// the fresh terminal. Answered by Interrupted if the program's own group is in the foreground:
/// then the requester's group shall get the signal too, as if it shared the terminal.
struct Typed {
  std::int32_t signal = 0;
  bool operator==(const Typed&) const = default;
};
struct Interrupted {
  std::int32_t signal = 0;
  bool operator==(const Interrupted&) const = default;
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
  /// Files and folders that are read-only in the context.
  StringList protect;
  /// Tier `uids`: the user id that nobody but this context's programs has.
  std::uint32_t own_uid = kNoId;
  bool is_platform = false;
  /// Agents here run under a shim farm: the init makes its tmpfs, answers with the root of it, and
  /// lets no program be made of a memfd (vm.memfd_noexec).
  bool with_farm = false;
  /// Agents run here: the init tries what could enforce their routing, and answers what cannot.
  bool with_route = false;
  /// The largest pid of the PID namespace (Linux 6.14), and the size of each tmpfs; 0 = unlimited.
  std::uint32_t pid_max = 0;
  std::uint64_t tmpfs_bytes = 0;
  /// For the upper layers of overlays over the system's folders; empty: the root is shared.
  std::string upper_dir;
  /// They may be kept in memory where upper_dir cannot have them; else the root is shared then.
  bool upper_in_memory = false;
  /// Folders that the upper layers are to have from the beginning.
  StringList watched;
  /// Paths that are the platform's nevertheless.
  StringList same;
  /// /tmp and /var/tmp are its own.
  bool private_tmp = false;
  /// Setuid programs have no effect.
  bool no_new_privs = false;
  /// 0: none; 1: those that reach beyond a context; 2: and those that `strict` does without.
  std::uint8_t refused_calls = 0;
  /// routerd wants a JobEnded for each job that has run.
  bool reports_jobs = false;
  /// The machine's id of the context's uid and gid 0, 65535 more follow; 0: ids are the machine's.
  std::uint32_t first_id = 0;
  bool operator==(const Setup&) const = default;
};

/// The context stands. Or, with error != 0, `step` failed and the init ends. With a farm the
/// message has one descriptor: the root of its tmpfs, writable.
struct Ready {
  std::int32_t error = 0;
  std::string step;
  /// What this tier could not do here, one line each.
  StringList lacks = {};
  /// Why there is no farm although there should be; empty if there is one.
  std::string farm_error = {};
  /// Programs can be made of a memfd all the same, and why.
  std::string memfd_error = {};
  /// There are no overlays although Setup asked for them; `lacks` says why.
  bool shares_root = false;
  bool operator==(const Ready&) const = default;
};

/// An init tells what it has tried after Ready, if Setup asked for that: why programs cannot be put
/// behind a binfmt_misc of their own, and why they cannot be traced. Empty if they can.
struct Walls {
  std::string binfmt_error;
  std::string ptrace_error;
  bool operator==(const Walls&) const = default;
};

/// What a spawner does to an agent's process before its exec, so that what the agent starts cannot
/// run unrouted (docs/ARCHITECTURE.md, "Routing layers").
struct Confinement {
  /// contexts::Mechanism; 0: nothing to do.
  std::uint8_t mechanism = 0;
  /// Folders that the farm's folder of the same index, in `shims`, is bound over.
  StringList covered;
  StringList shims;
  /// Files in covered folders that stay what they are.
  StringList kept;
  /// Bound over /etc/ld.so.preload; empty: nothing is.
  std::string preload_file;
  /// The last descriptors of the job, in this order: a Landlock ruleset to be entered, and the
  /// program, opened with O_PATH.
  bool has_ruleset = false;
  bool has_program = false;
  /// The stub as the program sees it, absolute.
  std::string stub = {};
  bool operator==(const Confinement&) const = default;
};

/// routerd hands a job to an init. The descriptors of request.fd_numbers, then those of
/// `confinement`, came before in SpawnFds messages and are closed at routerd by now; with this
/// comes the connection to the requester.
struct Spawn {
  std::uint64_t job = 0;
  ExecRequest request;
  Confinement confinement = {};
  bool operator==(const Spawn&) const = default;
};

struct SpawnFds {
  std::uint64_t job = 0;
  bool operator==(const SpawnFds&) const = default;
};

/// routerd hands an init the connection of a stub that is to become one of the agent's own programs
/// under binfmt, after RunHere: what then goes over it is between the two (wire/seizing.h).
struct RunAgain {
  /// The stub as the agent sees it, absolute.
  std::string stub;
  /// The program's file; the stub may become no other.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const RunAgain&) const = default;
};

/// routerd tells a shell host what changed in the context's environment; applied before the next
/// command.
struct ShellUpdate {
  StringList set;
  StringList unset;
  /// Empty: stay.
  std::string cwd;
  bool operator==(const ShellUpdate&) const = default;
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

/// How a job ended, for the audit log; units as Exited.
struct JobEnded {
  std::uint64_t job = 0;
  std::int32_t wait_status = 0;
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t max_rss_kib = 0;
  bool timed_out = false;
  bool operator==(const JobEnded&) const = default;
};

/// What the job's requester was told, for the route log: the program was not started after all.
struct JobRefused {
  std::uint64_t job = 0;
  NotStarted refusal;
  bool operator==(const JobRefused&) const = default;
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

/// What routerd wants of a shell host; answered by ShellState.
struct ShellOrder {
  enum class Action : std::uint8_t {
    tell = 0,
    /// As Ctrl-C: SIGINT to the running command.
    interrupt = 1,
    /// Kills everything the shell has started, refuses the commands that wait, and ends the host.
    reset = 2,
  };
  std::uint64_t serial = 0;
  Action action = Action::tell;
  bool operator==(const ShellOrder&) const = default;
};

struct ShellState {
  std::uint64_t serial = 0;
  ShellEngine engine = ShellEngine::none;
  /// Of the shell in the context, 0 = none runs (yet).
  std::int32_t pid = 0;
  /// Where the next command runs; empty before the first.
  std::string cwd;
  /// Pids of background jobs that run.
  std::vector<std::uint32_t> background;
  /// The running command first, then those that wait, in their order (pid 0).
  std::vector<Job> jobs;
  /// interrupt: 1 if a command ran; reset: processes that were killed.
  std::uint32_t reached = 0;
  /// reset: those that are left all the same.
  std::uint32_t survivors = 0;
  bool operator==(const ShellState&) const = default;
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

/// An exec whose job outlives its requester. The descriptors are those of the request, the init's
/// end of the job's socket (made by the requester: socketpair(2)), then those of `streams`, which
/// routerd keeps and never reads.
struct KeptExec {
  /// Chosen by the requester, not used yet; at most kMaxKeptKey bytes.
  std::string key;
  /// Opaque to routerd; at most kMaxKeptNote bytes.
  std::string note;
  /// What each kept descriptor is: "job", "stdin", "stdout", "stderr", "tty" and so on.
  StringList streams;
  /// An encoded ExecRequest.
  std::string request;
  bool operator==(const KeptExec&) const = default;
};
/// Replaces what is noted about a kept job, and keeps further descriptors for it.
struct KeepNote {
  std::string key;
  std::string note;
  StringList streams = {};
  bool operator==(const KeepNote&) const = default;
};
/// Take up a kept job: routerd answers Attached with copies of what it keeps.
struct Attach {
  std::string key;
  bool operator==(const Attach&) const = default;
};
struct Attached {
  std::string key;
  std::string note;
  /// What each passed descriptor is.
  StringList streams;
  bool operator==(const Attached&) const = default;
};
/// Forget a kept job and what it left, or one of its streams: the end of a pipe is one only when
/// nobody has it open.
struct Release {
  std::string key;
  /// Empty: the whole job.
  std::string stream = {};
  bool operator==(const Release&) const = default;
};

/// For the API: a connection to the api.sock of `context`, by one of its programs; "": of a client
/// of the daemon's who may do everything. The descriptor is the connection.
struct ApiConnection {
  std::string context;
  bool operator==(const ApiConnection&) const = default;
};

/// Which of the two kinds of ports.
enum class PortProtocol : std::uint8_t { tcp = 0, udp = 1 };

/// "Give me the socket of my port: I bind it to this address."
struct PortRequest {
  std::uint16_t port = 0;
  PortProtocol protocol = PortProtocol::tcp;
  /// 4 bytes of IPv4 or 16 of IPv6, as in a packet.
  std::string address;
  bool operator==(const PortRequest&) const = default;
};

/// errno, or 0 and the socket.
struct PortGrant {
  std::int32_t error = 0;
  bool operator==(const PortGrant&) const = default;
};

/// "Run airlock-files in this context, as its user": with the program's end of a STREAM socketpair.
/// The connection then is that of a job, as after an ExecRequest.
struct FileJob {
  std::string context;
  /// Absolute; where relative paths begin. Empty: the context's.
  std::string cwd;
  std::uint32_t umask = 022;
  OnDisconnect on_disconnect = OnDisconnect::kill_group;
  bool operator==(const FileJob&) const = default;
};

/// One operation on files; answered by what each says, then FileEnd, or by FileFailed.
struct FileRequest {
  enum class Operation : std::uint8_t {
    /// FileHead; then the client's FileRange; then FileData…
    get = 0,
    /// FileReady; then the client's FileData… and FileEnd; then the new file's FileEntry.
    put = 1,
    /// FileEntry… of what is in a folder.
    list = 2,
    /// FileEntry.
    stat = 3,
    make_folder = 4,
    /// From `path` to `to`.
    move = 5,
    remove = 6,
    /// A symlink at `path` that says `to`.
    link = 7,
    set_mode = 8,
  };
  Operation operation = Operation::stat;
  std::string path;
  std::string to = {};
  /// Of what is made; else as programs make it, by umask.
  bool has_mode = false;
  std::uint32_t mode = 0;
  /// put, make_folder: with the folders above it. make_folder: one that is there will do.
  bool with_parents = false;
  /// list, remove: with all that is in folders below.
  bool is_recursive = false;
  /// stat: what a symlink leads to.
  bool follows = false;
  /// move, link: in the place of what is there.
  bool replaces = false;
  /// list: entries at most.
  std::uint32_t limit = 0;
  /// put, remove: only if the file's tag (wire/file_tag.h) is one of these, or none of these; "*"
  /// is any file. Empty: no condition.
  StringList if_match = {};
  StringList if_none_match = {};
  bool operator==(const FileRequest&) const = default;
};

/// Contents may come.
struct FileReady {
  bool exists = false;
  bool operator==(const FileReady&) const = default;
};

enum class FileType : std::uint8_t {
  file = 0,
  folder = 1,
  symlink = 2,
  fifo = 3,
  socket = 4,
  device = 5,
  other = 6,
};

struct FileEntry {
  FileType type = FileType::file;
  /// Any bytes but NUL. list: below the listed folder, with '/' between; else the last part.
  std::string name;
  /// What a symlink says.
  std::string target = {};
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  ///< permissions, with setuid and the like: 07777
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t mtime_ns = 0;  ///< since 1970
  std::uint64_t inode = 0;
  bool operator==(const FileEntry&) const = default;
};

/// An opened file.
struct FileHead {
  FileEntry entry;
  /// Bytes there are to be read, if that is known: not for what the kernel makes up meanwhile.
  bool has_length = false;
  std::uint64_t length = 0;
  bool operator==(const FileHead&) const = default;
};

/// The part of it that is to be sent; less if it ends before.
struct FileRange {
  std::uint64_t offset = 0;
  std::uint64_t length = ~std::uint64_t{0};
  bool operator==(const FileRange&) const = default;
};

/// The next bytes of a file, at most kMaxFileData.
struct FileData {
  std::string bytes;
  bool operator==(const FileData&) const = default;
};

struct FileEnd {
  /// list: there is more than was told.
  bool is_truncated = false;
  bool operator==(const FileEnd&) const = default;
};

struct FileFailed {
  enum class Why : std::uint8_t {
    /// A system call said so.
    os = 0,
    /// The condition of the request is not met.
    condition = 1,
    /// There is something that is no regular file.
    not_a_file = 2,
  };
  Why why = Why::os;
  std::int32_t error = 0;  ///< errno, for `os`
  bool operator==(const FileFailed&) const = default;
};

}  // namespace wire
