#include "routerd/services/run.h"

#include <string.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/file.h"
#include "base/wait_status.h"

namespace routerd::services {
namespace {

End end_of(base::WaitStatus status) {
  if (const auto signal = status.term_signal()) {
    const char* name = ::sigabbrev_np(*signal);
    return {false, "killed by " + (name != nullptr ? std::string("SIG") + name
                                                   : "signal " + std::to_string(*signal))};
  }
  const int code = status.exit_code().value_or(-1);
  return {code == 0, "exit code " + std::to_string(code)};
}

}  // namespace

base::Result<std::shared_ptr<Run>> Run::start(boost::asio::io_context& io, const Launcher& launch,
                                              wire::ExecRequest request,
                                              std::vector<base::UniqueFd> fds, OnEnd on_end) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  base::UniqueFd own(ends[0]);
  auto given = launch(std::move(request), base::UniqueFd(ends[1]), std::move(fds));
  if (!given) return tl::unexpected<base::Error>(given.error());
  std::shared_ptr<Run> run(new Run(std::move(on_end)));
  run->session_ = std::make_shared<FrameSession>(
      io, std::move(own), [weak = run->weak_from_this()](FrameSession&, const wire::Frame& frame) {
        const auto alive = weak.lock();
        if (alive) alive->take(frame);
        return alive != nullptr;
      });
  run->session_->on_close([weak = run->weak_from_this()] {
    if (const auto alive = weak.lock()) alive->end({false, "lost: its context ended"});
  });
  boost::asio::post(io, [session = run->session_] { session->start(); });
  return run;
}

Run::~Run() { abandon(); }

void Run::signal(int number) {
  const wire::Signal signal{number, wire::KillScope::group};
  if (session_) session_->send(wire::MessageType::signal, wire::encode(signal));
}

void Run::abandon() {
  on_end_ = nullptr;
  if (const auto session = std::exchange(session_, nullptr)) session->close();
}

void Run::take(const wire::Frame& frame) {
  if (frame.type == wire::MessageType::started) {
    if (auto started = wire::decode<wire::Started>(frame.payload)) pid_ = started->pid;
  } else if (frame.type == wire::MessageType::exited) {
    if (auto exited = wire::decode<wire::Exited>(frame.payload)) {
      end(end_of(base::WaitStatus(exited->wait_status)));
    }
  } else if (frame.type == wire::MessageType::not_started) {
    if (auto refusal = wire::decode<wire::NotStarted>(frame.payload)) {
      end({false, "not started: " + refusal->message});
    }
  }
}

void Run::end(const End& end) {
  if (const auto on_end = std::exchange(on_end_, nullptr)) on_end(end);
}

}  // namespace routerd::services
