#include "routerd/drain.h"

#include <signal.h>

#include "routerd/services/supervisor.h"

namespace routerd {

using namespace std::chrono_literals;

namespace {

constexpr auto kPause = 20ms;

/// Questions of control verbs count up from 1.
std::uint64_t next_serial() {
  static std::uint64_t serial = std::uint64_t{1} << 62;
  return ++serial;
}

}  // namespace

Drain::Drain(Daemon& daemon, boost::asio::io_context& io, std::chrono::milliseconds grace,
             Done done)
    : daemon_(daemon),
      grace_(io, grace),
      pause_(io),
      done_(std::move(done)),
      self_(std::make_shared<Drain*>(this)) {
  for (const auto& [name, hosted] : daemon_.hosted()) {
    if (name == services::kControl) continue;
    (void)hosted->handover->tell(wire::SignalJob{0, {SIGTERM, wire::KillScope::group}});
  }
  grace_.async_wait([this](boost::system::error_code error) {
    if (!error) finish(waiting_ > 0 && running_ == 0 ? -1 : static_cast<int>(running_));
  });
  ask();
}

Drain::~Drain() = default;

void Drain::ask() {
  running_ = 0;
  waiting_ = 1;  // this function itself: no early end
  for (const auto& [name, hosted] : daemon_.hosted()) {
    if (name == services::kControl) continue;
    const auto serial = next_serial();
    if (!hosted->handover->tell(wire::ListJobs{serial})) continue;
    ++waiting_;
    hosted->job_questions.emplace(serial,
                                  [weak = std::weak_ptr<Drain*>(self_)](const wire::JobList& list) {
                                    if (const auto self = weak.lock())
                                      (*self)->take(list.jobs.size());
                                  });
  }
  take(0);
}

void Drain::take(std::size_t jobs) {
  running_ += jobs;
  if (--waiting_ > 0) return;
  if (running_ == 0) return finish(0);
  pause_.expires_after(kPause);
  pause_.async_wait([this](boost::system::error_code error) {
    if (!error) ask();
  });
}

void Drain::finish(int jobs_left) {
  grace_.cancel();
  pause_.cancel();
  self_.reset();
  if (const auto done = std::exchange(done_, nullptr)) done(jobs_left);
}

}  // namespace routerd
