#pragma once

#include <string>

#include "tests/bench/http_client.h"

namespace bench {

/// Where programs of the benchmark run.
inline const std::string kExecPath = "/api/v1/contexts/user/exec";

/// KiB as MB.
std::string megabytes(double kib);

/// A daemon with an API on 127.0.0.1:8080, for as long as this lives. Throws std::runtime_error if
/// it does not start.
class ApiDaemon {
 public:
  /// `folder`: of Airlock's programs.
  explicit ApiDaemon(const std::string& folder);
  ~ApiDaemon();
  ApiDaemon(const ApiDaemon&) = delete;
  ApiDaemon& operator=(const ApiDaemon&) = delete;

  static HttpClient client();
  static AttachedClient attach(const std::string& path);
  /// A folder of its own, that contexts see.
  std::string folder() const { return folder_; }
  double rss_kib() const;
  /// What it has taken so far, user and system; to 10 ms.
  double cpu_seconds() const;
  /// What the API's files in memory take, the output of execs.
  double files_kib() const;

 private:
  std::string airlock_;
  char folder_[30] = "/tmp/airlock-bench-XXXXXX";
  int pid_ = 0;
};

}  // namespace bench
