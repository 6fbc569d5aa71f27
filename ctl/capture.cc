#include "ctl/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"

namespace ctl {

Capture::Capture(Sink sink) : done_(::eventfd(0, EFD_CLOEXEC)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  read_end_.reset(ends[0]);
  write_end_.reset(ends[1]);
  // Signals are for the main thread, which forwards them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, sink = std::move(sink)] { copy(sink); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Capture::~Capture() {
  write_end_.reset();
  const std::uint64_t one = 1;
  (void)!::write(done_.borrow(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Capture::copy(const Sink& sink) {
  (void)base::set_nonblocking(read_end_.borrow(), true);
  pollfd watched[2] = {{read_end_.borrow(), POLLIN, 0}, {done_.borrow(), POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 2, -1) < 0) continue;
    const bool is_last = watched[1].revents != 0;
    char block[65536];
    const ssize_t n = ::read(read_end_.borrow(), block, sizeof block);
    if (n > 0) {
      sink({block, static_cast<std::size_t>(n)});
    } else if (n == 0 || is_last) {
      return;
    }
  }
}

}  // namespace ctl
