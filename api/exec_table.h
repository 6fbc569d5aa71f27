#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/exec.h"

namespace api {

/// All execs that are known: those that run and, for a while, those that have ended.
class ExecTable {
 public:
  explicit ExecTable(ExecHost host);

  /// EAGAIN: too many run.
  base::Result<std::shared_ptr<Exec>> start(const ExecOrder& order, const std::string& context);
  /// Takes up one that an earlier process has left.
  base::Result<void> adopt(const wire::Attached& left, std::vector<base::UniqueFd> fds);
  /// Null if there is none (any more).
  std::shared_ptr<Exec> find(const std::string& id) const;
  std::vector<std::shared_ptr<Exec>> in_context(const std::string& context) const;
  std::vector<std::shared_ptr<Exec>> all() const;
  const std::string& new_shell() const { return host_.new_shell; }
  /// Forgets one that has ended.
  void forget(const std::string& id);

  std::size_t running() const { return running_; }
  std::size_t known() const { return execs_.size(); }

  static constexpr std::size_t kMostRunning = 2000;
  /// Of those that have ended.
  static constexpr std::size_t kMostEnded = 256;
  static constexpr std::uint64_t kMostKeptBytes = 64u << 20;
  static constexpr std::int64_t kLongestKeptMs = 10 * 60 * 1000;

 private:
  void note_end(const ExecFacts& facts);
  void forget_old();
  std::uint64_t kept_bytes() const;

  ExecHost host_;
  std::map<std::string, std::shared_ptr<Exec>> execs_;
  /// Ids, the first to end first.
  std::deque<std::string> ended_;
  std::size_t running_ = 0;
  std::function<void(const ExecFacts&)> on_ended_;
};

}  // namespace api
