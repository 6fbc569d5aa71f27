#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/codec.h"

// Frames and the descriptors that travel with them (SCM_RIGHTS, unix(7)). Every received
// descriptor is close-on-exec and owned before anything is checked; on any error all are closed.
namespace wire {

struct Frame {
  MessageType type{};
  std::string payload;
  std::vector<base::UniqueFd> fds;
  /// The process that has sent all of it, in our PID namespace, as the kernel says it where the
  /// receiving socket has SO_PASSCRED (unix(7)). 0: not known, not visible, or several.
  pid_t sender = 0;
};

/// Sends one frame on a STREAM socket; more than kMaxFdsPerMessage descriptors go in several
/// sendmsg(2) calls. Blocks if the socket does. `flags` is added to MSG_NOSIGNAL (MSG_DONTWAIT:
/// EAGAIN means that part of the frame may be out: the connection is of no use any more).
/// Borrows `fds`. EMSGSIZE: beyond the limits; EPIPE, ECONNRESET: the peer is gone.
base::Result<void> send_frame(int socket, MessageType type, std::string_view payload,
                              std::span<const int> fds = {}, int flags = 0);

/// Encodes and sends `message`.
template <class Message>
base::Result<void> send_message(int socket, const Message& message, std::span<const int> fds = {},
                                int flags = 0) {
  return send_frame(socket, type_of<Message>(), encode(message), fds, flags);
}

/// Collects frames from a STREAM socket, however they are cut. Never reads beyond the frame it is
/// in, so descriptors of the next frame cannot be taken for this one's.
class Receiver {
 public:
  /// One complete frame, or nothing if the socket is non-blocking and has no more for now.
  /// ECONNRESET when the peer closed; EBADMSG, EPROTONOSUPPORT, EMSGSIZE for a frame that breaks
  /// the protocol (close the connection then).
  base::Result<std::optional<Frame>> receive(int socket);

  /// True between the first byte of a frame and its last.
  bool is_inside_frame() const { return !bytes_.empty(); }

 private:
  base::Result<bool> read_some(int socket, std::size_t wanted);
  base::Result<std::optional<Frame>> finish();
  void note_sender(pid_t pid);
  void reset();

  std::string bytes_;
  std::optional<Header> header_;
  std::vector<base::UniqueFd> fds_;
  /// Nothing before the first bytes.
  std::optional<pid_t> sender_;
};

/// Sends one frame as one datagram of a SEQPACKET socket: atomically, or not at all (EAGAIN). A
/// payload beyond kMaxInlinePayload travels in a memfd. At most kMaxFdsPerMessage - 1 descriptors
/// (EMSGSIZE). Borrows `fds`. Does not block if the socket does not.
base::Result<void> send_datagram(int socket, MessageType type, std::string_view payload,
                                 std::span<const int> fds = {});

/// Of a datagram that cannot be read: its sender's fault, who will miss an answer. Read on, or
/// take it for the end.
enum class Unreadable { skip, stop };

/// Passes each datagram that is there to `take`, with receive_datagram. False when there will be no
/// more: the peer has closed, or an unreadable one stopped it. Non-blocking sockets only.
template <class Take>
bool take_datagrams(int socket, Unreadable unreadable, Take&& take);

/// One datagram, or nothing if none is there (non-blocking socket). ECONNRESET: closed by the peer.
/// Not to be called by two threads at once.
base::Result<std::optional<Frame>> receive_datagram(int socket);

template <class Take>
bool take_datagrams(int socket, Unreadable unreadable, Take&& take) {
  for (;;) {
    auto frame = receive_datagram(socket);
    if (frame && !*frame) return true;
    if (frame) {
      take(std::move(**frame));
    } else if (unreadable == Unreadable::stop || frame.error().code == ECONNRESET) {
      return false;
    }
  }
}

}  // namespace wire
