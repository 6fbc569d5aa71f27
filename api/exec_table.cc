#include "api/exec_table.h"

#include <boost/asio/post.hpp>

namespace api {

ExecTable::ExecTable(ExecHost host) : host_(std::move(host)), on_ended_(host_.on_ended) {
  host_.on_ended = [this](const ExecFacts& facts) { note_end(facts); };
}

base::Result<std::shared_ptr<Exec>> ExecTable::start(const ExecOrder& order,
                                                     const std::string& context) {
  if (running_ >= kMostRunning) {
    return base::failure("start another program", EAGAIN, "too many run");
  }
  auto exec = Exec::start(host_, order, context);
  if (!exec) return exec;
  ++running_;
  execs_.emplace((*exec)->facts().id, *exec);
  return exec;
}

base::Result<void> ExecTable::adopt(const wire::Attached& left, std::vector<base::UniqueFd> fds) {
  auto exec = Exec::adopt(host_, left, std::move(fds));
  if (!exec) return tl::unexpected<base::Error>(exec.error());
  const std::string id = (*exec)->facts().id;
  if ((*exec)->has_ended()) {
    ended_.push_back(id);
  } else {
    ++running_;
  }
  execs_.emplace(id, std::move(*exec));
  return {};
}

std::shared_ptr<Exec> ExecTable::find(const std::string& id) const {
  const auto found = execs_.find(id);
  return found == execs_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Exec>> ExecTable::in_context(const std::string& context) const {
  std::vector<std::shared_ptr<Exec>> list;
  for (const auto& [id, exec] : execs_) {
    if (exec->facts().context == context) list.push_back(exec);
  }
  return list;
}

std::vector<std::shared_ptr<Exec>> ExecTable::all() const {
  std::vector<std::shared_ptr<Exec>> list;
  for (const auto& [id, exec] : execs_) list.push_back(exec);
  return list;
}

void ExecTable::forget(const std::string& id) {
  const auto node = execs_.extract(id);
  if (!node.empty()) node.mapped()->release();
  std::erase(ended_, id);
}

void ExecTable::note_end(const ExecFacts& facts) {
  --running_;
  ended_.push_back(facts.id);
  on_ended_(facts);
  // Not now: it is in the middle of its end.
  boost::asio::post(host_.io, [this] { forget_old(); });
}

std::uint64_t ExecTable::kept_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& id : ended_) {
    const auto exec = find(id);
    for (const auto stream : {Exec::out, Exec::err}) {
      if (exec) sum += std::min(exec->output(stream).end(), exec->facts().max_bytes);
    }
  }
  return sum;
}

// One whose output others still write goes last: they would get SIGPIPE.
void ExecTable::forget_old() {
  const std::int64_t oldest = now_ms() - kLongestKeptMs;
  for (std::size_t left = ended_.size(); left > 0 && !ended_.empty(); --left) {
    const std::string id = ended_.front();
    const auto exec = find(id);
    const bool is_old = exec == nullptr || exec->facts().ended_ms < oldest;
    if (!is_old && ended_.size() <= kMostEnded && kept_bytes() <= kMostKeptBytes) return;
    if (exec != nullptr && !exec->is_silent() && ended_.size() <= 4 * kMostEnded) {
      ended_.pop_front();
      ended_.push_back(id);
    } else {
      forget(id);
    }
  }
}

}  // namespace api
