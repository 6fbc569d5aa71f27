#include "routerd/services/machine.h"

#include <algorithm>
#include <utility>

namespace routerd::services {

const char* name_of(State state) {
  switch (state) {
    case State::stopped:
      return "stopped";
    case State::waiting:
      return "waiting";
    case State::starting:
      return "starting";
    case State::ready:
      return "ready";
    case State::stopping:
      return "stopping";
    case State::failed:
      return "failed";
  }
  return "?";
}

Machine::Machine(const ServiceSpec& spec)
    : policy_(spec.restart),
      restart_delay_(spec.restart_delay),
      max_restart_delay_(spec.max_restart_delay),
      ready_timeout_(spec.ready.kind == Probe::Kind::none ? milliseconds{0} : spec.ready.timeout),
      stop_timeout_(spec.stop_timeout) {}

bool Machine::is_running() const {
  return state_ == State::starting || state_ == State::ready || state_ == State::stopping;
}

std::vector<Action> Machine::take_actions() { return std::exchange(actions_, {}); }

void Machine::enter(State state, Time now) {
  state_ = state;
  since_ = now;
  deadline_.reset();
}

void Machine::spawn(Time now) {
  enter(State::starting, now);
  is_late_ = false;
  ++spawns_;
  actions_.push_back(Action::spawn);
  if (ready_timeout_ > milliseconds{0}) deadline_ = now + ready_timeout_;
}

void Machine::begin_stop(Time now) {
  enter(State::stopping, now);
  actions_.push_back(Action::ask_to_stop);
  deadline_ = now + stop_timeout_;
}

void Machine::start(Time now) {
  is_wanted_ = true;
  if (!is_running()) spawn(now);
}

void Machine::stop(Time now) {
  is_wanted_ = false;
  is_late_ = false;
  if (state_ == State::starting || state_ == State::ready) return begin_stop(now);
  if (state_ != State::stopping) enter(State::stopped, now);
}

void Machine::restart(Time now) {
  is_wanted_ = true;
  is_late_ = false;
  failures_ = 0;
  if (state_ == State::starting || state_ == State::ready) return begin_stop(now);
  if (state_ != State::stopping) spawn(now);
}

void Machine::became_ready(Time now) {
  if (state_ == State::starting) enter(State::ready, now);
}

// The first death after a good time is an accident and the next start comes at once: clients are
// waiting in the backlog.
milliseconds Machine::delay() const {
  if (failures_ <= 1) return milliseconds{0};
  const unsigned doublings = std::min(failures_ - 2, 20u);
  return std::min(max_restart_delay_, restart_delay_ * (1u << doublings));
}

void Machine::ended(Time now, const End& end) {
  if (!is_running()) return;
  last_end_ = end.text;
  if (is_late_) last_end_ = "not ready in time, then " + end.text;
  const bool was_ordered = state_ == State::stopping && !is_late_;
  if (was_ordered) {
    if (is_wanted_) return spawn(now);
    return enter(State::stopped, now);
  }
  const bool was_stable = state_ == State::ready && now - since_ >= kStableAfter;
  const bool is_failure = is_late_ || !end.is_success;
  if (policy_ == Restart::never || (policy_ == Restart::on_failure && !is_failure)) {
    is_wanted_ = false;
    return enter(is_failure ? State::failed : State::stopped, now);
  }
  failures_ = was_stable ? 1 : failures_ + 1;
  const milliseconds wait = delay();
  if (wait == milliseconds{0}) return spawn(now);
  enter(State::waiting, now);
  deadline_ = now + wait;
}

void Machine::expired(Time now) {
  if (!deadline_ || now < *deadline_) return;
  deadline_.reset();
  switch (state_) {
    case State::waiting:
      return spawn(now);
    case State::starting:
      begin_stop(now);
      is_late_ = true;
      return;
    case State::stopping:
      actions_.push_back(Action::kill);
      return;
    default:
      return;
  }
}

}  // namespace routerd::services
