#include "api/file_job.h"

#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "api/file_answers.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kTimeToEnd{5};

}  // namespace

std::shared_ptr<FileJob> FileJob::start(App& app, Exchange& exchange,
                                        const wire::FileRequest& request, bool outlives_us,
                                        Events events) {
  std::shared_ptr<FileJob> job(new FileJob(app));
  job->context_ = exchange.request().param("context");
  job->events_ = std::move(events);
  exchange.on_gone([weak = job->weak_from_this()] {
    if (const auto alive = weak.lock()) alive->close();
  });
  wire::FileJob order{.context = job->context_, .cwd = request.path.starts_with('/') ? "/" : ""};
  if (!request.to.starts_with('/') && !request.to.empty()) order.cwd.clear();
  if (outlives_us) order.on_disconnect = wire::OnDisconnect::keep;
  if (auto begun = job->begin(order, request, asked_by(app, exchange.request())); !begun) {
    boost::asio::post(app.io, [job, why = problem_of(begun.error())] { job->fail(why); });
  }
  return job;
}

base::Result<void> FileJob::begin(const wire::FileJob& order, const wire::FileRequest& request,
                                  const AskedBy& asked_by) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("make a socket for files");
  }
  base::UniqueFd ours(ends[0]);
  std::vector<base::UniqueFd> theirs;
  theirs.emplace_back(ends[1]);
  auto connection = app_.daemon->open();
  if (!connection) return tl::unexpected<base::Error>(connection.error());
  // These call back only while this object has them.
  job_ = std::make_unique<FrameConnection>(
      app_.io, std::move(*connection), [this](const wire::Frame& frame) { take_answer(frame); },
      [this] {
        has_ended_ = true;
        lose_program();
      });
  data_ = std::make_unique<FrameConnection>(
      app_.io, std::move(ours), [this](const wire::Frame& frame) { take_message(frame); },
      [this] {
        is_silent_ = true;
        lose_program();
      });
  data_->on_drained([this] {
    if (!is_closed_) events_.on_room();
  });
  DaemonClient::announce(*job_, asked_by, {});
  job_->send(order, std::move(theirs));
  data_->send(request);
  return {};
}

void FileJob::take_answer(const wire::Frame& frame) {
  if (frame.type == wire::MessageType::not_started) {
    if (auto told = wire::decode<wire::NotStarted>(frame.payload)) refusal_ = *told;
  }
  if (frame.type == wire::MessageType::not_started || frame.type == wire::MessageType::exited) {
    has_ended_ = true;
    lose_program();
  }
}

void FileJob::take_message(const wire::Frame& frame) {
  const auto self = shared_from_this();
  if (is_closed_) return;
  if (frame.type != wire::MessageType::file_failed) return events_.on_message(frame);
  const auto failure = wire::decode<wire::FileFailed>(frame.payload);
  fail(failure ? problem_of(*failure) : problem("io-error"));
}

// What it has said is read to its end first.
void FileJob::lose_program() {
  if (has_ended_) end_deadline_.cancel();
  if (!has_ended_ || !is_silent_ || is_closed_) return;
  if (refusal_) return tell_why_not(*refusal_);
  fail(problem("io-error", "the program that works on files was ended"));
}

void FileJob::tell_why_not(const wire::NotStarted& refusal) {
  app_.daemon->ask(
      "ctx.inspect", {{"context", context_}},
      [self = shared_from_this(), refusal](const base::Result<json>& there) {
        if (!there) return self->fail(problem_of(there.error()));
        if (refusal.error == ENOENT || refusal.error == ENOTDIR) {
          return self->fail(problem("cwd-not-found"));
        }
        if (refusal.error == EACCES) return self->fail(problem("file-forbidden"));
        self->fail(refusal.error == EAGAIN ? problem("overloaded") : problem("not-supported"));
      });
}

void FileJob::expect(std::chrono::seconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (self && !error) self->fail(problem("files-timeout"));
  });
}

void FileJob::hold() {
  if (data_) data_->hold();
}

void FileJob::go_on() {
  if (data_) data_->go_on();
}

void FileJob::fail(const Problem& problem) {
  if (!is_closed_ && !std::exchange(has_failed_, true)) events_.on_failed(problem);
}

void FileJob::close() {
  if (std::exchange(is_closed_, true)) return;
  deadline_.cancel();
  // Not now: this may be in the middle of a callback of theirs.
  boost::asio::post(app_.io, [self = shared_from_this()] {
    self->data_.reset();
    self->events_ = {};
    self->has_ended_ ? self->job_.reset() : self->let_end();
  });
}

/// The program ends by itself when nobody is at the other end of its socket; its requester's
/// leaving would kill it, perhaps a moment after a client had all it wanted.
void FileJob::let_end() {
  end_deadline_.expires_after(kTimeToEnd);
  end_deadline_.async_wait(
      [self = shared_from_this()](boost::system::error_code) { self->job_.reset(); });
}

}  // namespace api
