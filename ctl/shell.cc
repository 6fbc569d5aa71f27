// Commands whose output goes through this process: what persistent shells run, and captured ones.

#include "ctl/shell.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "ctl/capture.h"
#include "ctl/exec_client.h"

namespace ctl {
namespace {

int input_for(bool interactive) {
  const bool takes_input = interactive && ::isatty(STDIN_FILENO) == 0;
  return takes_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                     : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

wire::Outcome attend_with(int socket, wire::ExecRequest request, const std::vector<int>& fds) {
  request.fd_numbers = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  return attend_request(socket, std::move(request), fds);
}

}  // namespace

Captured run_captured(int socket, wire::ExecRequest request, bool interactive) {
  Captured captured;
  {
    Capture out([&captured](std::string_view bytes) { captured.out += bytes; });
    Capture err([&captured](std::string_view bytes) { captured.err += bytes; });
    captured.outcome =
        attend_with(socket, std::move(request),
                    {input_for(interactive), out.take_write_end(), err.take_write_end()});
  }
  return captured;
}

wire::Outcome run_in_shell(int socket, wire::ExecRequest request, bool interactive) {
  std::vector<std::unique_ptr<Capture>> copies;
  std::vector<int> fds = {input_for(interactive)};
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (::isatty(fd) == 0) {
      const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
      fds.push_back(copy >= 0 ? copy : ::open("/dev/null", O_WRONLY | O_CLOEXEC));
      continue;
    }
    copies.push_back(std::make_unique<Capture>(
        [fd](std::string_view bytes) { (void)base::write_all(fd, bytes); }));
    fds.push_back(copies.back()->take_write_end());
  }
  return attend_with(socket, std::move(request), fds);
}

}  // namespace ctl
