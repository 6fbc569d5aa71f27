#include "tests/support/shell_host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"

namespace support {
namespace {

/// What is in the pipe now.
std::string drain(int fd) {
  (void)base::set_nonblocking(fd, true);
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n <= 0) return text;
    text.append(block, static_cast<std::size_t>(n));
  }
}

}  // namespace

ShellHost::ShellHost(const std::string& bash, const Libraries& libraries) {
  auto pair = seqpacket_pair();
  channel_ = std::move(pair.ours);
  const std::string folder = programs_folder();
  const auto in_folder = [&folder](const std::string& name) {
    return name.find('/') == std::string::npos ? folder + "/" + name : name;
  };
  const std::string loadable = in_folder(libraries.loadable);
  const std::string receiver = in_folder(libraries.receiver);
  const int theirs = pair.theirs.borrow();
  child_ = std::make_unique<Child>([folder, theirs, bash, loadable, receiver] {
    ::setsid();
    ::dup2(theirs, 3);
    // As from a spawner: what the test runner holds, a lock perhaps, is none of the shell's.
    ::close_range(4, ~0u, 0);
    const std::string host = folder + "/airlock-shell";
    ::setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
    ::execl(host.c_str(), "airlock-shell", bash.c_str(), loadable.c_str(), receiver.c_str(),
            nullptr);
    return 127;
  });
}

ShellHost::Pending ShellHost::start(const std::string& command, const Options& options) {
  auto connection = stream_pair(SOCK_NONBLOCK);
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  if (auto written = base::write_all(input.write.borrow(), options.standard_input); !written) {
    throw std::runtime_error(written.error().message());
  }
  wire::Spawn order;
  order.job = next_job_++;
  order.request.argv = {command};
  for (const auto& entry : options.env) order.request.env.add(entry);
  order.request.cwd = options.cwd;
  order.request.fd_numbers = {0, 1, 2};
  order.request.policy.time_limit_ms = options.time_limit_ms;
  order.request.policy.kill_grace_ms = options.kill_grace_ms;
  order.request.policy.shell = {"default", options.fail_if_busy, options.no_checkpoint};
  const int fds[] = {options.input_fd >= 0 ? options.input_fd : input.read.borrow(),
                     options.output_fd >= 0 ? options.output_fd : output.write.borrow(),
                     errors.write.borrow(), connection.theirs.borrow()};
  auto sent =
      wire::send_datagram(channel_.borrow(), wire::MessageType::spawn, wire::encode(order), fds);
  if (!sent) throw std::runtime_error(sent.error().message());
  return {Job(order.job, std::move(connection.ours)), std::move(output.read),
          std::move(errors.read)};
}

ShellHost::Result ShellHost::finish(Pending pending) {
  Result result;
  for (;;) {
    const auto frame = pending.job.next();
    if (frame.type == wire::MessageType::exited) {
      result.exited = value_of(wire::decode<wire::Exited>(frame.payload));
    } else if (frame.type == wire::MessageType::not_started) {
      result.refused = value_of(wire::decode<wire::NotStarted>(frame.payload));
    } else {
      continue;
    }
    result.output = drain(pending.output.borrow());
    result.errors = drain(pending.errors.borrow());
    return result;
  }
}

wire::ShellState ShellHost::order(wire::ShellOrder::Action action) {
  tell(wire::ShellOrder{1, action});
  auto frame = value_of(wire::receive_datagram(channel_.borrow()));
  if (!frame) throw std::runtime_error("the host does not answer");
  return value_of(wire::decode<wire::ShellState>(frame->payload));
}

std::string ShellHost::Result::ending() const {
  if (!exited) return "refused";
  const base::WaitStatus status(exited->wait_status);
  if (const auto signal = status.term_signal()) return "signal " + std::to_string(*signal);
  return "exit " + std::to_string(status.exit_code().value_or(-1));
}

}  // namespace support
