#include "api/audience.h"

#include <signal.h>

#include <nlohmann/json.hpp>

#include "api/attachment.h"

namespace api {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

constexpr std::chrono::seconds kHangUpTime{5};

const char* state_of(const Audience& audience) {
  const auto& facts = audience.exec()->facts();
  if (facts.has_ended()) return "ended";
  if (facts.pid == 0) return "starting";
  return audience.is_empty() ? "detached" : "attached";
}

}  // namespace

Audience::Audience(boost::asio::io_context& io, std::string id, std::shared_ptr<Exec> exec,
                   std::uint64_t idle_ms)
    : id_(std::move(id)), exec_(std::move(exec)), idle_ms_(idle_ms), idle_(io) {}

void Audience::join(const std::shared_ptr<Attachment>& attachment) {
  idle_.cancel();
  if (attachment->options().is_writer) {
    const auto old = writer_.lock();
    writer_ = attachment;
    if (old) old->end(kTakenOver, "another client has taken over");
  }
  attached_.push_back(attachment);
  tell_all();
}

void Audience::leave(const Attachment* attachment) {
  std::erase_if(attached_, [attachment](const auto& each) {
    const auto alive = each.lock();
    return !alive || alive.get() == attachment;
  });
  if (writer_.lock().get() == attachment) writer_.reset();
  tell_all();
  if (attached_.empty()) arm_idle();
}

void Audience::replace(std::shared_ptr<Exec> exec) {
  exec_ = std::move(exec);
  const auto all = attached_;
  for (const auto& each : all) {
    if (const auto attachment = each.lock()) attachment->follow(exec_);
  }
  if (attached_.empty()) arm_idle();
}

void Audience::tell_all() {
  const auto all = attached_;
  for (const auto& each : all) {
    if (const auto attachment = each.lock()) attachment->tell_state();
  }
}

void Audience::arm_idle() {
  if (idle_ms_ == 0 || exec_->has_ended()) return;
  idle_.expires_after(milliseconds(idle_ms_));
  idle_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (self && !error && self->attached_.empty()) self->hang_up();
  });
}

void Audience::hang_up() {
  const auto exec = exec_;
  if (!exec->signal(SIGHUP, wire::KillScope::group)) return;
  auto timer = std::make_shared<boost::asio::steady_timer>(idle_.get_executor(), kHangUpTime);
  timer->async_wait(
      [timer, exec](boost::system::error_code) { exec->signal(SIGKILL, wire::KillScope::group); });
}

json Audience::state() const {
  json told = {{"state", state_of(*this)},
               {"attached", attached_.size()},
               {"hasWriter", has_writer()},
               {"idleTimeoutMs", idle_ms_}};
  const bool is_waiting = idle_ms_ != 0 && attached_.empty() && !exec_->has_ended();
  const auto left =
      std::chrono::duration_cast<milliseconds>(idle_.expiry() - std::chrono::steady_clock::now());
  told["idleLeftMs"] = is_waiting ? json(std::max<std::int64_t>(0, left.count())) : json();
  return told;
}

}  // namespace api
