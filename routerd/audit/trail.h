#pragma once

#include <chrono>
#include <map>
#include <memory>

#include "contexts/context.h"
#include "routerd/audit/audit_log.h"
#include "routerd/route_log.h"
#include "wire/message.h"

namespace routerd::audit {

/// What happens in the daemon, as records of the audit log. docs/SECURITY.md lists them.
class Trail {
 public:
  explicit Trail(std::unique_ptr<AuditLog> log) : log_(std::move(log)) {}

  void daemon_started(std::string_view tier);
  void daemon_stopped();
  void context_created(const contexts::Context& context);
  void context_changed(const contexts::ContextSpec& before, const contexts::ContextSpec& after);
  /// Before it is destroyed; jobs of it that have not ended have none.
  void context_ending(const contexts::Context& context);
  void context_destroyed(const std::string& name, int survivors);
  /// Its time is over: `why` is "ttl" or "idle". It is destroyed next.
  void context_expired(const std::string& name, std::string_view why);
  /// What the API has refused, as it tells (docs/API.md).
  void api_refused(const nlohmann::json& refusal);
  void client_refused(pid_t pid, unsigned uid, std::string_view reason);
  /// Also of a job that could not be started after all (RouteLog::add_failure).
  void exec_decided(const RouteRecord& record);
  /// A persistent shell itself: its host is the job `job`.
  void shell_started(const std::string& context, const std::string& shell, unsigned uid,
                     std::uint64_t job);
  void job_ended(const std::string& context, const wire::JobEnded& end);
  /// The same of a command in a shell. Its host runs as the shell's user, so no other context's job
  /// is believed to have ended.
  void command_ended(const std::string& context, const wire::JobEnded& end);
  /// One that its shell did not run.
  void command_refused(const std::string& context, const wire::JobRefused& refused);
  /// Records limits that were hit since the last time.
  void look_at_limits(const contexts::Context& context);

  const AuditLog& log() const { return *log_; }
  AuditLog& log() { return *log_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct OpenJob {
    std::string context;
    std::string program;
    ApiRequest asked_by;
    Clock::time_point started;
  };
  using OpenJobs = std::map<std::uint64_t, OpenJob>;
  void open(std::uint64_t number, OpenJob job);
  void end(OpenJobs::iterator job, nlohmann::json record);

  std::unique_ptr<AuditLog> log_;
  OpenJobs open_jobs_;
  /// By context and limit.
  std::map<std::pair<std::string, std::string>, std::uint64_t> hits_;
};

}  // namespace routerd::audit
