#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/audience.h"
#include "api/exec_order.h"
#include "api/exec_table.h"

namespace api {

/// Terminals: execs with a terminal that clients attach to and leave, by a name that stays when the
/// program is started anew. Also knows who is attached to other execs.
class Terminals {
 public:
  Terminals(boost::asio::io_context& io, ExecTable& execs) : io_(io), execs_(execs) {}

  /// Errors as ExecTable::start().
  base::Result<std::shared_ptr<Audience>> create(TerminalOrder order, const std::string& context);
  /// Null if there is none (any more): it goes when its exec is forgotten.
  std::shared_ptr<Audience> find(const std::string& id);
  std::vector<std::shared_ptr<Audience>> in_context(const std::string& context);
  /// Who is attached to an exec, be it of a terminal or not.
  std::shared_ptr<Audience> of_exec(const std::shared_ptr<Exec>& exec);
  /// Starts its program anew, with the size it has now; the old one is killed.
  base::Result<void> reset(Audience& terminal, AskedBy asked_by);
  /// Takes up those of the execs that an earlier process has left.
  void adopt();

 private:
  void prune();

  boost::asio::io_context& io_;
  ExecTable& execs_;
  std::map<std::string, std::shared_ptr<Audience>> terminals_;
  /// By exec.
  std::map<std::string, std::weak_ptr<Audience>> others_;
};

/// What a client is told.
nlohmann::json to_json(const Audience& terminal);

}  // namespace api
