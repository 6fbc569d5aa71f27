#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "routerd/ports/spec.h"

namespace routerd::services {

using std::chrono::milliseconds;

enum class Restart { always, on_failure, never };

/// How a service gets its ports: libairlock-bind gives them to whoever asks bind(2) for one, or
/// they are passed as sd_listen_fds(3) expects them.
enum class Handing { bind, listen_fds };

/// How to find out that a service does its work.
struct Probe {
  enum class Kind {
    none,     ///< it is ready when it runs
    accept,   ///< it accepts a connection on its first TCP port
    http,     ///< there it answers GET `path` with a status below 500
    command,  ///< `command`, run as the service, ends with 0
  };
  Kind kind = Kind::none;
  std::string path;
  std::vector<std::string> command;
  /// Not ready after this long is a failure.
  milliseconds timeout{60'000};
  bool operator==(const Probe&) const = default;
};

struct LogLimits {
  std::uint64_t max_bytes = 10u << 20;  ///< of one file
  unsigned keep = 3;                    ///< files beside the current one
  bool operator==(const LogLimits&) const = default;
};

/// A program of the control plane, as configured.
struct ServiceSpec {
  std::string name;
  std::vector<std::string> command;
  /// Name or uid; empty = a uid of its own (own_uid).
  std::string user;
  std::string cwd = "/";
  std::map<std::string, std::string> env;
  std::vector<ports::PortSpec> ports;
  Handing handing = Handing::bind;
  Probe ready;
  Restart restart = Restart::always;
  milliseconds restart_delay{100};
  milliseconds max_restart_delay{30'000};
  int stop_signal = SIGTERM;
  milliseconds stop_timeout{10'000};
  LogLimits log;
  /// Airlock's own HTTP API: its program is beside the daemon's, and it may ask the daemon.
  bool is_api = false;
  bool operator==(const ServiceSpec&) const = default;
};

}  // namespace routerd::services
