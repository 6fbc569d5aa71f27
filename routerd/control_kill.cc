#include "routerd/control_kill.h"

#include <signal.h>

#include <algorithm>

#include "base/file.h"
#include "routerd/ancestry.h"
#include "routerd/process_table.h"
#include "routerd/scoped_kill.h"

namespace routerd {

using nlohmann::json;

namespace {

constexpr std::uint64_t kLongestWait = 60'000;

/// The processes of the context whose init this is, without those of airlock's own: the spawner and
/// what it forks run the init's program. One that cannot be looked into and is the init's child is
/// the spawner, too.
std::set<pid_t> programs_of(const ProcessTable& table, pid_t init) {
  const FileId own = executable_of(init);
  std::set<pid_t> programs;
  for (const auto& [pid, parent] : table.parents()) {
    if (pid == init || table.nearest(pid, {init}) == 0) continue;
    const FileId executable = executable_of(pid);
    const bool is_own = executable.is_known() ? executable.is_same_file(own) : parent == init;
    if (!is_own) programs.insert(pid);
  }
  return programs;
}

/// What `leader` has started, itself, and its process group, which orphans do not leave by being
/// orphans.
std::set<pid_t> started_by(const ProcessTable& table, pid_t init, pid_t leader) {
  std::set<pid_t> started;
  for (const pid_t pid : programs_of(table, init)) {
    if (table.nearest(pid, {leader}) != 0 || ::getpgid(pid) == leader) started.insert(pid);
  }
  return started;
}

base::Result<ScopedKill::Order> read_order(const json& body) {
  const auto escalate = body.value("escalate", json::object());
  const auto after = escalate.value("afterMs", std::uint64_t{0});
  const ScopedKill::Order order{
      .signal = body.value("signal", SIGTERM),
      .second_signal = escalate.empty() ? 0 : escalate.value("signal", SIGKILL),
      .after = std::chrono::milliseconds(after)};
  const auto is_signal = [](int number) { return number >= 1 && number <= 64; };
  if (!is_signal(order.signal) || (!escalate.empty() && !is_signal(order.second_signal))) {
    return base::failure("signal number", EINVAL, "1 to 64");
  }
  if (after > kLongestWait) return base::failure("escalate.afterMs", EINVAL, "at most 60000");
  return order;
}

void run(Daemon& daemon, ScopedKill::Find find, const ScopedKill::Order& order,
         const Reply& reply) {
  std::make_shared<ScopedKill>(
      daemon.io(), std::move(find), order,
      [reply](const ScopedKill::Result& result) {
        reply(json{{"delivered", result.delivered}, {"survivors", result.survivors}});
      })
      ->start();
}

/// The pid, in the daemon's namespace, of what `inner` is in the context; 0 if it has ended.
pid_t outer_pid(const ProcessTable& table, pid_t init, pid_t inner) {
  for (const auto& [pid, parent] : table.parents()) {
    if (table.nearest(pid, {init}) != 0 && inner_pid(pid) == inner) return pid;
  }
  return 0;
}

}  // namespace

void kill_in_scope(Daemon& daemon, HostedContext& hosted, const json& body, const Reply& reply) {
  const auto order = read_order(body);
  if (!order) return reply(tl::unexpected<base::Error>(order.error()));
  const pid_t init = hosted.context->init_pid();
  if (body.value("scope", "") == "context") {
    return run(
        daemon, [init] { return programs_of(ProcessTable::read(), init); }, *order, reply);
  }
  if (body.value("scope", "") != "exec") {
    return reply(base::failure("scope", EINVAL, "expected exec or context"));
  }
  const auto job = body.value("job", std::uint64_t{0});
  with_job_pid(daemon, hosted, job, reply, [&daemon, init, order = *order, reply](pid_t inner) {
    const pid_t leader = outer_pid(ProcessTable::read(), init, inner);
    // Those that it has started are found as long as it lives; then only its group is.
    run(
        daemon,
        [init, leader] {
          return leader == 0 ? std::set<pid_t>{} : started_by(ProcessTable::read(), init, leader);
        },
        order, reply);
  });
}

}  // namespace routerd
