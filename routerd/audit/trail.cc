#include "routerd/audit/trail.h"

#include <sys/wait.h>
#include <unistd.h>

#include "routerd/spec_json.h"
#include "routerd/version.h"

namespace routerd::audit {

using json = nlohmann::json;

namespace {

/// As many jobs as contexts can have running, and some whose end nobody will tell.
constexpr std::size_t kMaxOpenJobs = 65'536;

std::int64_t milliseconds_since(std::chrono::steady_clock::time_point start) {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now() - start).count();
}

json status_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {{"signal", WTERMSIG(wait_status)}};
  return {{"exit", WEXITSTATUS(wait_status)}};
}

/// Which request of the API's it was, if it was one.
void add_request(json& record, const ApiRequest& request) {
  const std::pair<const char*, const std::string&> words[] = {
      {"operation", request.operation}, {"exec", request.exec},
      {"token", request.token},         {"client", request.client},
      {"requestId", request.id},        {"traceparent", request.traceparent}};
  for (const auto& [name, word] : words) {
    if (!word.empty()) record[name] = word;
  }
}

std::vector<std::string> names_of(const contexts::Environment& env) {
  std::vector<std::string> names;
  for (const auto& entry : env) names.push_back(entry.substr(0, entry.find('=')));
  return names;
}

}  // namespace

void Trail::daemon_started(std::string_view tier) {
  log_->add("daemon.started", {{"version", kVersionString}, {"pid", ::getpid()}, {"tier", tier}});
}

void Trail::daemon_stopped() { log_->add("daemon.stopped", {{"pid", ::getpid()}}); }

void Trail::context_created(const contexts::Context& context) {
  json record = to_json(context.spec());
  record["context"] = record["name"];
  record.erase("name");
  record["tier"] = contexts::name_of(context.tier());
  record["lacks"] = context.lacks();
  json limits = json::object();
  for (const auto& limit : context.kept_limits()) limits[limit.name] = limit.value;
  record["limits"] = std::move(limits);
  log_->add("context.created", std::move(record));
}

void Trail::context_changed(const contexts::ContextSpec& before,
                            const contexts::ContextSpec& after) {
  json record = {{"context", after.name}};
  if (before.env.pinned != after.env.pinned) record["envNames"] = names_of(after.env.pinned);
  if (before.cwd != after.cwd) record["cwd"] = after.cwd;
  if (before.child_context != after.child_context) record["childContext"] = after.child_context;
  log_->add("context.changed", std::move(record));
}

void Trail::context_ending(const contexts::Context& context) {
  look_at_limits(context);
  for (auto job = open_jobs_.begin(); job != open_jobs_.end();) {
    const auto next = std::next(job);
    if (job->second.context == context.name()) {
      end(job, {{"status", {{"lost", "its context was destroyed"}}}});
    }
    job = next;
  }
  std::erase_if(hits_, [&](const auto& hit) { return hit.first.first == context.name(); });
}

void Trail::context_destroyed(const std::string& name, int survivors) {
  log_->add("context.destroyed", {{"context", name}, {"survivors", survivors}});
}

void Trail::context_expired(const std::string& name, std::string_view why) {
  log_->add("context.expired", {{"context", name}, {"reason", why}});
}

void Trail::api_refused(const json& refusal) {
  json record = json::object();
  for (const char* key : {"code", "client", "token", "operation"}) {
    record[key] = refusal.value(key, "").substr(0, 128);
  }
  record["times"] = refusal.value("times", 1u);
  log_->add("api.refused", std::move(record));
}

void Trail::client_refused(pid_t pid, unsigned uid, std::string_view reason) {
  log_->add("client.refused", {{"pid", pid}, {"uid", uid}, {"reason", reason}});
}

void Trail::exec_decided(const RouteRecord& route) {
  json record = {{"job", route.job},
                 {"pid", route.pid},
                 {"uid", route.uid},
                 {"from", route.from},
                 {"to", route.to},
                 {"program", route.program},
                 {"outcome", route.outcome},
                 {"rule", route.rule},
                 {"reason", route.reason},
                 {"argc", route.argc},
                 {"latencyUs", route.latency_us}};
  if (log_->options().with_argv) record["argv"] = route.argv;
  if (!route.blocked_env.empty()) record["blockedEnv"] = route.blocked_env;
  if (!route.refused_fds.empty()) record["refusedFds"] = route.refused_fds;
  log_->add("exec", std::move(record));
  if (route.outcome == "failed") {
    const auto job = open_jobs_.find(route.job);
    if (job != open_jobs_.end()) end(job, {{"status", {{"failed", route.reason}}}});
    return;
  }
  if (!route.asked_by.operation.empty()) {
    json asked = {{"job", route.job},
                  {"context", route.to},
                  {"program", route.program},
                  {"outcome", route.outcome}};
    add_request(asked, route.asked_by);
    log_->add("api.exec", std::move(asked));
  }
  if (route.outcome != "run_in") return;
  open(route.job, {route.to, route.program, route.asked_by, Clock::now()});
}

void Trail::shell_started(const std::string& context, const std::string& shell, unsigned uid,
                          std::uint64_t job) {
  log_->add("shell.started", {{"job", job}, {"context", context}, {"shell", shell}, {"uid", uid}});
  open(job, {context, "airlock-shell", {}, Clock::now()});
}

void Trail::open(std::uint64_t number, OpenJob job) {
  if (open_jobs_.size() >= kMaxOpenJobs) open_jobs_.erase(open_jobs_.begin());
  open_jobs_[number] = std::move(job);
}

void Trail::end(OpenJobs::iterator job, json record) {
  record["job"] = job->first;
  record["context"] = job->second.context;
  record["program"] = job->second.program;
  record["durationMs"] = milliseconds_since(job->second.started);
  add_request(record, job->second.asked_by);
  open_jobs_.erase(job);
  log_->add("exec.ended", std::move(record));
}

void Trail::job_ended(const std::string& context, const wire::JobEnded& end) {
  json record = {{"userUs", end.user_us},
                 {"systemUs", end.system_us},
                 {"timedOut", end.timed_out},
                 {"maxRssKib", end.max_rss_kib}};
  record["status"] = status_of(end.wait_status);
  const auto job = open_jobs_.find(end.job);
  if (job != open_jobs_.end()) return this->end(job, std::move(record));
  record["job"] = end.job;
  record["context"] = context;
  log_->add("exec.ended", std::move(record));
}

void Trail::command_ended(const std::string& context, const wire::JobEnded& end) {
  const auto job = open_jobs_.find(end.job);
  if (job != open_jobs_.end() && job->second.context == context) job_ended(context, end);
}

void Trail::command_refused(const std::string& context, const wire::JobRefused& refused) {
  constexpr std::size_t kLongest = 512;
  const auto job = open_jobs_.find(refused.job);
  if (job == open_jobs_.end() || job->second.context != context) return;
  end(job, {{"status", {{"failed", refused.refusal.message.substr(0, kLongest)}}}});
}

void Trail::look_at_limits(const contexts::Context& context) {
  for (const auto& limit : context.kept_limits()) {
    const auto hits = context.limit_hits(limit.name);
    auto& known = hits_[{context.name(), limit.name}];
    if (hits == known) continue;
    log_->add("limit.hit", {{"context", context.name()},
                            {"limit", limit.name},
                            {"value", limit.value},
                            {"times", hits - known}});
    known = hits;
  }
}

}  // namespace routerd::audit
