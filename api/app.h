#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>

#include "api/daemon_client.h"
#include "api/exec_table.h"
#include "api/guard.h"
#include "api/idempotency.h"
#include "api/latency.h"
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
  /// Of requests that are answered at once or after a while. Not of streams: they begin at once and
  /// last as long as what they tell of, so neither time says how fast the API is.
  Latencies latencies;
  struct Streams {
    std::uint64_t begun = 0;
    std::uint64_t open = 0;
  };
  Streams events;  ///< Server-Sent Events and NDJSON
  Streams web_sockets;
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

/// What the daemon's audit log shall have of the request that asks for a program.
AskedBy asked_by(const App& app, const Request& request);

/// Answers with `problem`.
void refuse(Exchange& exchange, const Problem& problem);

}  // namespace api
