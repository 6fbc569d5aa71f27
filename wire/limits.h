#pragma once

#include <cstddef>
#include <cstdint>

// Every limit of the exec protocol, in one place. Sizes are in bytes.
namespace wire {

/// The version of docs/PROTOCOL.md that this code speaks; it is in every frame.
constexpr std::uint16_t kVersion = 1;

/// Bytes of a frame header: length u32, type u16, version u16, descriptor count u32.
constexpr std::size_t kHeaderSize = 12;

/// Longest payload. execve(2) takes at most 6 MiB of argv and env however large the stack limit
/// (three quarters of _STK_LIM, fs/exec.c); the rest of a request is far below 2 MiB.
constexpr std::size_t kMaxPayload = 8u << 20;

/// Longest payload that travels inside a datagram to an init; a longer one goes in a memfd.
/// Well below the default SO_SNDBUF of 208 KiB (socket(7)).
constexpr std::size_t kMaxInlinePayload = 60u << 10;

/// Descriptors in one sendmsg(2): SCM_MAX_FD, include/net/scm.h.
constexpr std::size_t kMaxFdsPerMessage = 253;

/// Descriptors of one request. Each load of kMaxFdsPerMessage needs a byte to travel with, and the
/// header alone must be enough of them.
constexpr std::size_t kMaxPassedFds = 3000;
static_assert(kMaxPassedFds <= kHeaderSize * kMaxFdsPerMessage);

/// Longest single string of argv or env: MAX_ARG_STRLEN, include/uapi/linux/binfmts.h.
constexpr std::size_t kMaxArgString = 131072;

/// Longest path or working directory: PATH_MAX, with its NUL.
constexpr std::size_t kMaxPath = 4096;

/// A whole request must have arrived this long after the connection was made.
constexpr int kRequestDeadlineMs = 10'000;

/// A stub gives up when nobody has answered its request for this long.
constexpr int kAnswerDeadlineMs = 20'000;

/// Signals that came before the program was started are held back for this long.
constexpr int kPatienceMs = 1'000;

/// A program that has run for so long is worth a further process of its requester.
constexpr int kLongRunMs = 20;

/// Jobs that one context runs at the same time.
constexpr std::size_t kMaxJobsPerContext = 8192;

/// Kept jobs of a daemon, and bytes of a kept job's key and note.
constexpr std::size_t kMaxKeptJobs = 4096;
constexpr std::size_t kMaxKeptKey = 128;
constexpr std::size_t kMaxKeptNote = 64u << 10;

/// Connections that one listener keeps waiting for their request at the same time.
constexpr std::size_t kMaxPendingConnections = 1024;

/// Bytes of a file in one FileData; together with a few of them below the default SO_SNDBUF.
constexpr std::size_t kMaxFileData = 64u << 10;

}  // namespace wire
