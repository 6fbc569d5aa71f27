#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "api/daemon_client.h"
#include "api/exec_table.h"
#include "api/guard.h"
#include "api/idempotency.h"
#include "api/problem.h"
#include "api/rate.h"
#include "api/refusals.h"
#include "api/terminals.h"
#include "api/tokens.h"

namespace api {

/// What /metrics tells. Never a name that a client chose.
struct Counters {
  std::map<std::pair<std::string, unsigned>, std::uint64_t> requests;  ///< by operation, status
  std::map<std::string, std::uint64_t> execs;                          ///< by how they ended
  std::uint64_t refused_tokens = 0;
  std::uint64_t connections = 0;  ///< open now
};

/// Everything handlers use. One for the process; single-threaded.
struct App {
  boost::asio::io_context& io;
  std::unique_ptr<DaemonClient> daemon;
  std::unique_ptr<ExecTable> execs;
  std::unique_ptr<Terminals> terminals;
  Tokens tokens;
  GuardRules rules;
  Counters counters;
  /// Requests of one token, and wrong tokens of one address: those of an address that many share
  /// must not keep the right ones out.
  Rate requests{kUsualRate};
  Rate wrong_tokens{kWrongTokenRate};
  Rate places{kPlaceRate};  ///< connections whose origin is asked for, of one token
  Idempotency idempotency;
  std::unique_ptr<Refusals> refusals;
  bool is_audited = false;  ///< the daemon keeps an audit log

  static constexpr double kUsualRate = 2000;     ///< per second
  static constexpr double kWrongTokenRate = 10;  ///< per second
  static constexpr double kPlaceRate = 50;       ///< per second
};

/// What the client is told when the daemon does not do what it was asked.
Problem problem_of(const base::Error& error);

/// Has the daemon record in its audit log, once the exec runs, by which request it was started.
void record_exec(App& app, const Request& request, const std::shared_ptr<Exec>& exec);

/// Answers with `problem`.
void refuse(Exchange& exchange, const Problem& problem);

}  // namespace api
