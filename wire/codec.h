#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "wire/message.h"

// Messages to bytes and back: pure functions, little-endian, bounds-checked. A decoder takes any
// bytes: what is not exactly one well-formed message is an Error, never undefined behaviour, and
// no allocation is larger than the bytes it was given.
namespace wire {

/// The type a message struct travels as.
template <class Message>
constexpr MessageType type_of();

/// The payload of `message` (no header).
template <class Message>
std::string encode(const Message& message);

/// EBADMSG: truncated, trailing bytes, a value out of range, a NUL or '/' rule broken.
template <class Message>
base::Result<Message> decode(std::string_view payload);

/// A frame's first kHeaderSize bytes.
struct Header {
  std::uint32_t length = 0;
  MessageType type{};
  std::uint16_t version = 0;
  std::uint32_t fd_count = 0;
};

std::string encode_header(const Header& header);

/// EBADMSG: too short; EPROTONOSUPPORT: another version; EMSGSIZE: beyond kMaxPayload or
/// kMaxPassedFds.
base::Result<Header> decode_header(std::string_view bytes);

#define AIRLOCK_MESSAGES(X)        \
  X(ExecRequest, exec_request)     \
  X(Started, started)              \
  X(Stopped, stopped)              \
  X(Continued, continued)          \
  X(Exited, exited)                \
  X(NotStarted, not_started)       \
  X(RunHere, run_here)             \
  X(Signal, signal)                \
  X(Resize, resize)                \
  X(GiveTerminal, give_terminal)   \
  X(TerminalGiven, terminal_given) \
  X(Resume, resume)                \
  X(Typed, typed)                  \
  X(Interrupted, interrupted)      \
  X(Setup, setup)                  \
  X(Ready, ready)                  \
  X(Walls, walls)                  \
  X(Spawn, spawn)                  \
  X(SpawnFds, spawn_fds)           \
  X(ShellUpdate, shell_update)     \
  X(ShellOrder, shell_order)       \
  X(ShellState, shell_state)       \
  X(Queued, queued)                \
  X(ListJobs, list_jobs)           \
  X(JobList, job_list)             \
  X(SignalJob, signal_job)         \
  X(Control, control)              \
  X(ControlReply, control_reply)   \
  X(Event, event)                  \
  X(Attach, attach)                \
  X(Attached, attached)            \
  X(Release, release)              \
  X(JobRefused, job_refused)       \
  X(PortRequest, port_request)     \
  X(PortGrant, port_grant)         \
  X(KeptExec, kept_exec)           \
  X(KeepNote, keep_note)           \
  X(JobEnded, job_ended)           \
  X(ApiConnection, api_connection) \
  X(RunAgain, run_again)           \
  X(FileJob, file_job)             \
  X(FileRequest, file_request)     \
  X(FileReady, file_ready)         \
  X(FileEntry, file_entry)         \
  X(FileHead, file_head)           \
  X(FileRange, file_range)         \
  X(FileData, file_data)           \
  X(FileEnd, file_end)             \
  X(FileFailed, file_failed)

#define AIRLOCK_DECLARE(Message, name)                         \
  template <>                                                  \
  constexpr MessageType type_of<Message>() {                   \
    return MessageType::name;                                  \
  }                                                            \
  extern template std::string encode<Message>(const Message&); \
  extern template base::Result<Message> decode<Message>(std::string_view);
AIRLOCK_MESSAGES(AIRLOCK_DECLARE)
#undef AIRLOCK_DECLARE

}  // namespace wire
