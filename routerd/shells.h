#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/environment.h"
#include "routerd/handover.h"
#include "wire/message.h"

namespace routerd {

/// The persistent shells of one context. Each is a host (airlock-shell), a job of the context,
/// which takes commands as a spawner takes jobs: routerd hands it the requester's connection and is
/// out of it. A host that ends takes its shell's state with it; the next command starts another.
class Shells : public std::enable_shared_from_this<Shells> {
 public:
  static constexpr std::size_t kMost = 64;

  /// A shell runs as whoever asked for it, so another user's shell of the same name is another one.
  struct Key {
    std::string name;
    wire::Credentials credentials;
    bool operator<(const Key& other) const;
  };
  /// How a shell starts: with what environment, where.
  struct Start {
    std::uint64_t job = 0;
    contexts::Environment env;
    std::string cwd;
    /// Folder with airlock-shell and its libraries, as the context sees it.
    std::string programs;
  };

  /// `prepare` puts the shell's programs where the context sees them; called once, before the first
  /// shell starts.
  using Prepare = std::function<base::Result<void>()>;
  /// If they are given, on_started is called for each shell, with its host's job; and one of the
  /// others for each command: it has run, or will not. The shell's user has said that.
  struct Reports {
    std::function<void(const Key&, std::uint64_t job)> on_started;
    std::function<void(const wire::JobEnded&)> on_ended;
    std::function<void(const wire::JobRefused&)> on_refused;
  };
  Shells(boost::asio::io_context& io, Prepare prepare, Reports reports = {})
      : io_(io), prepare_(std::move(prepare)), reports_(std::move(reports)) {}

  /// The shell's channel; null if there is none.
  Handover* find(const Key& key);
  /// Starts a shell as a job that `spawner` runs. EAGAIN: there are kMost already.
  base::Result<Handover*> start(const Key& key, Handover& spawner, Start how);
  std::vector<Key> keys() const;
  /// The jobs that their hosts are, not what runs in them.
  std::set<std::uint64_t> hosts() const;

  /// The context has changed: tells each shell what is different from what it was told before. It
  /// applies that before its next command.
  using EnvOf = std::function<contexts::Environment(const wire::Credentials&)>;
  void update(const EnvOf& env_of, const std::string& cwd);

  /// Has the next update() tell these variables, and the folder, also to shells that were told the
  /// same before: commands may have changed them since.
  void will_change(const std::vector<std::string>& names, bool folder);

  /// Has the host do something and tell its state. `then` is called once, later. ENOENT: no such
  /// shell (any more); ETIMEDOUT: its host does not answer. After a reset the shell is not found
  /// any more, from now on.
  using Then = std::function<void(base::Result<wire::ShellState>)>;
  void ask(const Key& key, wire::ShellOrder::Action action, Then then);

 private:
  struct Shell;
  struct Question {
    Then then;
    std::unique_ptr<boost::asio::steady_timer> deadline;
  };

  void take(Shell& shell, const wire::Frame& frame) const;
  void forget(const std::weak_ptr<Shell>& ended);
  static void answer(Shell& shell, std::uint64_t serial, base::Result<wire::ShellState> state);

  boost::asio::io_context& io_;
  Prepare prepare_;
  Reports reports_;
  std::map<Key, std::shared_ptr<Shell>> shells_;
  /// Were reset and have not ended yet.
  std::vector<std::shared_ptr<Shell>> ending_;
  std::uint64_t next_serial_ = 1;
};

/// What makes `now` of `before`: entries to set, names to unset.
wire::ShellUpdate difference(const contexts::Environment& before, const contexts::Environment& now);

}  // namespace routerd
