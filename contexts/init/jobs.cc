#include "contexts/init/jobs.h"

#include <signal.h>
#include <time.h>

#include <algorithm>

#include "wire/limits.h"

namespace contexts::init {

std::uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void Job::send_signal(const wire::Signal& signal) const {
  if (pid <= 0 || signal.signal <= 0 || signal.signal > 64) return;
  if (signal.scope == wire::KillScope::process || !has_execed()) {
    ::kill(pid, signal.signal);
    return;
  }
  if (!leads_group()) ProcessGroups::settle(group);
  // A program may have left its group, and it may have been the last in it.
  if (::kill(-group, signal.signal) != 0) ::kill(pid, signal.signal);
}

bool JobTable::is_full() const { return jobs_.size() >= wire::kMaxJobsPerContext; }

Job& JobTable::add(std::unique_ptr<Job> job) { return *jobs_.emplace_back(std::move(job)); }

Job* JobTable::find(std::uint64_t id) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [id](const auto& job) { return job->id == id; });
  return found == jobs_.end() ? nullptr : found->get();
}

Job* JobTable::find_pid(int pid) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [pid](const auto& job) { return job->pid == pid; });
  return found == jobs_.end() ? nullptr : found->get();
}

Job* JobTable::find_monitor(int pid) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [pid](const auto& job) {
    return job->session && job->session->monitor() == pid;
  });
  return found == jobs_.end() ? nullptr : found->get();
}

void JobTable::remove(const Job* job) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [job](const auto& each) { return each.get() == job; });
  if (found == jobs_.end()) return;
  std::swap(*found, jobs_.back());
  jobs_.pop_back();
}

void JobTable::release_launches() {
  for (const auto& job : jobs_) {
    if (job->launch && !job->awaits_terminal && job->launch->is_released() &&
        job->launch->error() == 0) {
      job->launch.reset();
    }
  }
}

int JobTable::enforce_deadlines() {
  const auto has_deadline = [](const auto& job) { return job->deadline_ms != 0; };
  if (std::none_of(jobs_.begin(), jobs_.end(), has_deadline)) return -1;
  const std::uint64_t now = now_ms();
  std::uint64_t next = 0;
  for (const auto& job : jobs_) {
    if (job->deadline_ms == 0) continue;
    if (job->deadline_ms <= now) {
      job->send_signal({job->timed_out ? SIGKILL : SIGTERM, wire::KillScope::group});
      job->deadline_ms = job->timed_out ? 0 : now + job->kill_grace_ms;
      job->timed_out = true;
    }
    if (job->deadline_ms != 0 && (next == 0 || job->deadline_ms < next)) next = job->deadline_ms;
  }
  if (next == 0) return -1;
  constexpr std::uint64_t kLongestWait = 3'600'000;  // epoll_wait(2) takes an int
  return static_cast<int>(std::min(next > now ? next - now : 0, kLongestWait));
}

}  // namespace contexts::init
