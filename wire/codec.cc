#include "wire/codec.h"

#include <bit>
#include <concepts>
#include <type_traits>

#include "wire/limits.h"

namespace wire {

static_assert(std::endian::native == std::endian::little, "the byte copies below assume it");

namespace {

// Each message lists its fields once, in visit() below; Writer and Reader walk the same list, so
// the two directions cannot drift apart.

class Writer {
 public:
  std::string take() { return std::move(bytes_); }
  void reserve(std::size_t size) { bytes_.reserve(size); }

  template <std::integral T>
  void operator()(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  requires std::is_enum_v<T>
  void bounded(const T& value, T) { (*this)(static_cast<std::underlying_type_t<T>>(value)); }
  void operator()(const bool& value) { bytes_.push_back(value ? 1 : 0); }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }
  void path(const std::string& text) { (*this)(text); }
  void operator()(const StringList& list) {
    (*this)(list.count());
    (*this)(list.bytes());
  }
  template <class T>
  void operator()(const std::vector<T>& items) {
    (*this)(static_cast<std::uint32_t>(items.size()));
    for (const auto& item : items) element(item);
  }

 private:
  template <class T>
  void element(const T& item) {
    if constexpr (std::integral<T>) {
      (*this)(item);
    } else {
      visit(*this, item);
    }
  }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool is_complete() const { return ok_ && bytes_.empty(); }

  template <std::integral T>
  void operator()(T& value) {
    if (const char* from = take(sizeof value)) __builtin_memcpy(&value, from, sizeof value);
  }
  /// An enum whose largest value is `last`.
  template <class T>
  requires std::is_enum_v<T>
  void bounded(T& value, T last) {
    std::underlying_type_t<T> number{};
    (*this)(number);
    if (number > static_cast<std::underlying_type_t<T>>(last)) ok_ = false;
    value = static_cast<T>(number);
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  void operator()(std::string& text) {
    std::uint32_t size = 0;
    (*this)(size);
    if (const char* from = take(size)) text.assign(from, size);
  }
  /// A string that the kernel will read as a path: no NUL, shorter than PATH_MAX.
  void path(std::string& text) {
    (*this)(text);
    if (text.size() >= kMaxPath || text.find('\0') != std::string::npos) ok_ = false;
  }
  void operator()(StringList& list) {
    std::uint32_t count = 0;
    std::string bytes;
    (*this)(count);
    (*this)(bytes);
    if (!list.assign(std::move(bytes), count)) ok_ = false;
  }
  template <class T>
  void operator()(std::vector<T>& items) {
    std::uint32_t count = 0;
    (*this)(count);
    // Each element takes at least one byte, so a count beyond the bytes left is a lie.
    if (count > bytes_.size()) ok_ = false;
    for (std::uint32_t i = 0; ok_ && i < count; ++i) element(items.emplace_back());
  }

 private:
  template <class T>
  void element(T& item) {
    if constexpr (std::integral<T>) {
      (*this)(item);
    } else {
      visit(*this, item);
    }
  }

  const char* take(std::size_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return nullptr;
    }
    const char* from = bytes_.data();
    bytes_.remove_prefix(size);
    return from;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

template <class T, class M>
concept Of = std::same_as<std::remove_const_t<T>, M>;

void visit(auto& codec, Of<Rlimit> auto& m) { codec(m.resource), codec(m.soft), codec(m.hard); }
void visit(auto& codec, Of<IntervalTimer> auto& m) {
  codec(m.which), codec(m.value_us), codec(m.interval_us);
}
void visit(auto& codec, Of<Winsize> auto& m) {
  codec(m.rows), codec(m.columns), codec(m.x_pixels), codec(m.y_pixels);
}
void visit(auto& codec, Of<ProcessState> auto& m) {
  codec(m.umask), codec(m.blocked_signals), codec(m.ignored_signals), codec(m.pending_signals);
  codec(m.nice), codec(m.io_priority), codec(m.oom_score_adj), codec(m.personality);
  codec(m.affinity), codec(m.rlimits);
  codec(m.session_leader), codec(m.group_leader), codec(m.no_new_privs);
  codec(m.child_subreaper), codec(m.parent_death_signal), codec(m.timer_slack_ns);
  codec(m.scheduler), codec(m.timers);
}
void visit(auto& codec, Of<Credentials> auto& m) { codec(m.uid), codec(m.gid), codec(m.groups); }
void visit(auto& codec, Of<ShellPolicy> auto& m) {
  codec(m.name), codec(m.fail_if_busy), codec(m.no_checkpoint);
}
void visit(auto& codec, Of<ExecPolicy> auto& m) {
  codec(m.context), codec.bounded(m.env, EnvMode::context), codec(m.stdio_only), codec(m.launch);
  codec(m.time_limit_ms), codec(m.kill_grace_ms), visit(codec, m.shell);
}
void visit(auto& codec, Of<ExecRequest> auto& m) {
  codec.path(m.path), codec(m.argv), codec(m.env), codec.path(m.cwd), codec(m.fd_numbers);
  codec(m.search_path), visit(codec, m.state), visit(codec, m.credentials);
  codec.bounded(m.tty, TtyMode::fresh), codec(m.tty_fd), visit(codec, m.winsize);
  codec.bounded(m.on_disconnect, OnDisconnect::keep);
  codec.bounded(m.on_stub_kill, KillScope::process);
  visit(codec, m.policy);
  codec(m.terminal_fds), codec(m.termios), codec(m.foreground);
  codec.bounded(m.caught_by, CaughtBy::ptrace), codec.path(m.script);
  codec(m.is_service);
}
void visit(auto& codec, Of<Started> auto& m) { codec(m.job), codec(m.pid); }
void visit(auto& codec, Of<Queued> auto& m) { codec(m.job); }
void visit(auto& codec, Of<Stopped> auto& m) { codec(m.signal); }
void visit(auto&, Of<Continued> auto&) {}
void visit(auto& codec, Of<ShellResult> auto& m) {
  codec.bounded(m.engine, ShellEngine::command), codec.bounded(m.event, ShellEvent::lost);
  codec(m.no_checkpoint), codec(m.cwd);
  codec(m.changed_env), codec(m.background);
}
void visit(auto& codec, Of<Exited> auto& m) {
  codec(m.wait_status), codec(m.user_us), codec(m.system_us), codec(m.max_rss_kib);
  codec(m.timed_out), visit(codec, m.shell);
}
void visit(auto& codec, Of<NotStarted> auto& m) {
  codec(m.exit_code), codec(m.error), codec(m.message), codec(m.is_told);
}
void visit(auto& codec, Of<JobEnded> auto& m) {
  codec(m.job), codec(m.wait_status), codec(m.user_us), codec(m.system_us);
  codec(m.max_rss_kib), codec(m.timed_out);
}
void visit(auto& codec, Of<JobRefused> auto& m) { codec(m.job), visit(codec, m.refusal); }
void visit(auto& codec, Of<RunHere> auto& m) {
  codec.path(m.path), codec(m.env), codec(m.in_own_namespaces);
}
void visit(auto& codec, Of<Signal> auto& m) {
  codec(m.signal), codec.bounded(m.scope, KillScope::process);
}
void visit(auto& codec, Of<Resize> auto& m) { visit(codec, m.winsize); }
void visit(auto&, Of<GiveTerminal> auto&) {}
void visit(auto&, Of<TerminalGiven> auto&) {}
void visit(auto& codec, Of<Resume> auto& m) { codec(m.foreground); }
void visit(auto& codec, Of<Typed> auto& m) { codec(m.signal); }
void visit(auto& codec, Of<Interrupted> auto& m) { codec(m.signal); }
void visit(auto& codec, Of<Setup> auto& m) {
  codec(m.tier), codec(m.name), codec.path(m.view_dir), codec.path(m.runtime_dir);
  codec.path(m.root_dir), codec.path(m.private_home), codec.path(m.home);
  codec(m.share), codec(m.hide), codec(m.capabilities), codec(m.own_devpts);
  codec(m.protect_kernel_knobs), codec(m.protect), codec(m.own_uid), codec(m.is_platform);
  codec(m.with_farm), codec(m.with_route), codec(m.pid_max), codec(m.tmpfs_bytes);
  codec.path(m.upper_dir), codec(m.upper_in_memory), codec(m.watched), codec(m.same),
      codec(m.private_tmp), codec(m.no_new_privs);
  codec(m.refused_calls), codec(m.reports_jobs), codec(m.first_id);
}
void visit(auto& codec, Of<Ready> auto& m) {
  codec(m.error), codec(m.step), codec(m.lacks), codec(m.farm_error), codec(m.memfd_error);
  codec(m.shares_root);
}
void visit(auto& codec, Of<Walls> auto& m) { codec(m.binfmt_error), codec(m.ptrace_error); }
void visit(auto& codec, Of<Confinement> auto& m) {
  codec(m.mechanism), codec(m.covered), codec(m.shims), codec(m.kept), codec.path(m.preload_file);
  codec(m.has_ruleset), codec(m.has_program), codec.path(m.stub);
}
void visit(auto& codec, Of<Spawn> auto& m) {
  codec(m.job), visit(codec, m.request), visit(codec, m.confinement);
}
void visit(auto& codec, Of<SpawnFds> auto& m) { codec(m.job); }
void visit(auto& codec, Of<RunAgain> auto& m) {
  codec.path(m.stub), codec(m.device), codec(m.inode);
}
void visit(auto& codec, Of<ShellUpdate> auto& m) {
  codec(m.set), codec(m.unset), codec.path(m.cwd);
}
void visit(auto& codec, Of<ListJobs> auto& m) { codec(m.serial); }
void visit(auto& codec, Of<Job> auto& m) {
  codec(m.job), codec(m.pid), codec(m.running_ms), codec(m.program);
}
void visit(auto& codec, Of<ShellOrder> auto& m) {
  codec(m.serial), codec.bounded(m.action, ShellOrder::Action::reset);
}
void visit(auto& codec, Of<ShellState> auto& m) {
  codec(m.serial), codec.bounded(m.engine, ShellEngine::command), codec(m.pid), codec(m.cwd);
  codec(m.background), codec(m.jobs), codec(m.reached), codec(m.survivors);
}
void visit(auto& codec, Of<JobList> auto& m) { codec(m.serial), codec(m.jobs); }
void visit(auto& codec, Of<SignalJob> auto& m) { codec(m.job), visit(codec, m.signal); }
void visit(auto& codec, Of<Control> auto& m) { codec(m.json); }
void visit(auto& codec, Of<ControlReply> auto& m) { codec(m.json); }
void visit(auto& codec, Of<Event> auto& m) { codec(m.json); }
void visit(auto& codec, Of<KeptExec> auto& m) {
  codec(m.key), codec(m.note), codec(m.streams), codec(m.request);
}
void visit(auto& codec, Of<KeepNote> auto& m) { codec(m.key), codec(m.note), codec(m.streams); }
void visit(auto& codec, Of<Attach> auto& m) { codec(m.key); }
void visit(auto& codec, Of<Attached> auto& m) { codec(m.key), codec(m.note), codec(m.streams); }
void visit(auto& codec, Of<Release> auto& m) { codec(m.key), codec(m.stream); }
void visit(auto& codec, Of<ApiConnection> auto& m) { codec(m.context); }
void visit(auto& codec, Of<PortRequest> auto& m) {
  codec(m.port), codec.bounded(m.protocol, PortProtocol::udp), codec(m.address);
}
void visit(auto& codec, Of<PortGrant> auto& m) { codec(m.error); }
void visit(auto& codec, Of<FileJob> auto& m) {
  codec(m.context), codec.path(m.cwd), codec(m.umask);
  codec.bounded(m.on_disconnect, OnDisconnect::keep);
}
void visit(auto& codec, Of<FileRequest> auto& m) {
  codec.bounded(m.operation, FileRequest::Operation::set_mode);
  codec.path(m.path), codec.path(m.to), codec(m.has_mode), codec(m.mode), codec(m.with_parents);
  codec(m.is_recursive), codec(m.follows), codec(m.replaces), codec(m.limit);
  codec(m.if_match), codec(m.if_none_match);
}
void visit(auto& codec, Of<FileReady> auto& m) { codec(m.exists); }
void visit(auto& codec, Of<FileEntry> auto& m) {
  codec.bounded(m.type, FileType::other), codec.path(m.name), codec.path(m.target);
  codec(m.size), codec(m.mode), codec(m.uid), codec(m.gid), codec(m.mtime_ns), codec(m.inode);
}
void visit(auto& codec, Of<FileHead> auto& m) {
  visit(codec, m.entry), codec(m.has_length), codec(m.length);
}
void visit(auto& codec, Of<FileRange> auto& m) { codec(m.offset), codec(m.length); }
void visit(auto& codec, Of<FileData> auto& m) { codec(m.bytes); }
void visit(auto& codec, Of<FileEnd> auto& m) { codec(m.is_truncated); }
void visit(auto& codec, Of<FileFailed> auto& m) {
  codec.bounded(m.why, FileFailed::Why::not_a_file), codec(m.error);
}

/// Room for the parts of a request that are long; the rest fits the slack.
std::size_t expected_size(const ExecRequest& request) {
  return request.argv.bytes().size() + request.env.bytes().size() + 1024;
}

}  // namespace

template <class Message>
std::string encode(const Message& message) {
  Writer writer;
  if constexpr (std::same_as<Message, ExecRequest>) writer.reserve(expected_size(message));
  if constexpr (std::same_as<Message, Spawn>) writer.reserve(expected_size(message.request));
  visit(writer, message);
  return writer.take();
}

template <class Message>
base::Result<Message> decode(std::string_view payload) {
  Reader reader(payload);
  Message message;
  visit(reader, message);
  if (!reader.is_complete()) return base::failure("decode a message", EBADMSG);
  return message;
}

#define AIRLOCK_DEFINE(Message, name)                   \
  template std::string encode<Message>(const Message&); \
  template base::Result<Message> decode<Message>(std::string_view);
AIRLOCK_MESSAGES(AIRLOCK_DEFINE)
#undef AIRLOCK_DEFINE

std::string encode_header(const Header& header) {
  Writer writer;
  writer(header.length), writer(static_cast<std::uint16_t>(header.type));
  writer(header.version), writer(header.fd_count);
  return writer.take();
}

base::Result<Header> decode_header(std::string_view bytes) {
  Reader reader(bytes.substr(0, kHeaderSize));
  Header header;
  std::uint16_t type = 0;
  reader(header.length), reader(type), reader(header.version), reader(header.fd_count);
  if (bytes.size() < kHeaderSize || !reader.is_complete()) {
    return base::failure("decode a frame header", EBADMSG);
  }
  header.type = static_cast<MessageType>(type);
  if (header.version != kVersion) {
    return base::failure("protocol version " + std::to_string(header.version), EPROTONOSUPPORT);
  }
  if (header.length > kMaxPayload || header.fd_count > kMaxPassedFds) {
    return base::failure("frame beyond the limits", EMSGSIZE);
  }
  return header;
}

}  // namespace wire
