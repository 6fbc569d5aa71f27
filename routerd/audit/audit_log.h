#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "routerd/audit/chain.h"
#include "routerd/audit/options.h"

namespace routerd::audit {

/// Appends records to files of mode 0600. add() never waits for a disk: a thread of its own writes.
/// What that cannot keep up with, or a full disk does not take, is dropped and counted, and the
/// next line that is written says how many.
class AuditLog {
 public:
  static constexpr std::size_t kMaxQueued = 8192;

  /// Makes the folder (0700) if it is missing and goes on where the log there ends. Errors: the
  /// folder or file cannot be made or written; EBADMSG: what ends there is no audit log.
  static base::Result<std::unique_ptr<AuditLog>> open(Options options);
  /// Writes what is queued.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  /// `record` gets "time" (UTC, now) and "event".
  void add(const char* event, nlohmann::json record);

  /// `follower` gets each record that is added from now on, on the thread that adds it, as it is
  /// before the log numbers it.
  using Follower = std::function<void(const nlohmann::json&)>;
  std::uint64_t follow(Follower follower);
  void unfollow(std::uint64_t number) { followers_.erase(number); }

  const Options& options() const { return options_; }
  /// Of what is written.
  Head head() const;
  /// Records that are lost so far, and why the last write failed; empty: none did.
  std::uint64_t dropped() const;
  std::string last_error() const;

 private:
  explicit AuditLog(Options options) : options_(std::move(options)) {}
  base::Result<void> resume();
  base::Result<void> open_file();
  void rotate();
  void run();
  void write(std::deque<nlohmann::json> records);
  bool write_text(const std::string& text);
  std::string path() const { return options_.folder + "/audit.jsonl"; }

  const Options options_;
  // The adding thread's own.
  std::map<std::uint64_t, Follower> followers_;
  std::uint64_t next_follower_ = 1;
  // The writer's own.
  base::UniqueFd file_;
  std::uint64_t size_ = 0;
  Head written_;
  // Shared.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<nlohmann::json> queue_;
  Head head_;
  std::uint64_t dropped_ = 0;
  /// Of dropped_, those that no line tells of yet.
  std::uint64_t untold_ = 0;
  std::string last_error_;
  bool is_ending_ = false;
  std::thread writer_;
};

/// The files of the log in `folder`, oldest first.
std::vector<std::string> files_in(const std::string& folder);

/// Checks a whole log. The error: it cannot be read.
base::Result<ChainCheck> verify(const std::string& folder, const Head& known);

}  // namespace routerd::audit
