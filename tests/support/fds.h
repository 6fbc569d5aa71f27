#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

// Descriptors for tests. All functions throw std::runtime_error where the system fails them, so
// they can be used in forked children too.
namespace support {

/// Nothing a test waits for takes this long.
constexpr int kDeadlineMs = 10'000;

struct SocketPair {
  base::UniqueFd ours;
  base::UniqueFd theirs;
};

/// A connected pair of AF_UNIX sockets, close-on-exec; `flags` as SOCK_NONBLOCK.
SocketPair stream_pair(int flags = 0);
SocketPair seqpacket_pair(int flags = 0);

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};
Pipe make_pipe();

/// A STREAM socket bound to `path`, which everybody may connect to; listening unless told
/// otherwise.
base::UniqueFd listen_at(const std::string& path, bool is_listening = true);

/// A memfd that tells who it is: name_of_fd() gives "/memfd:MARK (deleted)".
base::UniqueFd marked_fd(const std::string& mark);
std::vector<base::UniqueFd> marked_fds(std::size_t count, const std::string& prefix = "mark-");
std::string name_of_mark(const std::string& mark);
std::string name_of_fd(int fd);
std::vector<std::string> names_of_fds(const std::vector<base::UniqueFd>& fds);
std::vector<int> borrow_all(const std::vector<base::UniqueFd>& fds);

/// One sendmsg(2) of exactly these bytes and descriptors (SCM_RIGHTS).
void send_raw(int socket, std::string_view bytes, std::span<const int> fds = {});

/// poll(2) for POLLIN (data, end of file or error); false after `timeout_ms`.
bool await_readable(int fd, int timeout_ms = kDeadlineMs);

/// One byte or, at the end of file, nothing; each with the deadline.
char read_byte(int fd);
void await_end_of_file(int fd);
/// Everything until the end of file.
std::string read_to_end(int fd);

}  // namespace support
