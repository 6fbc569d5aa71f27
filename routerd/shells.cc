#include "routerd/shells.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <set>
#include <tuple>

#include "routerd/launch.h"
#include "wire/requester.h"

namespace routerd {
namespace {

constexpr std::uint32_t kChannelInHost = 3;
/// A reset kills first, and answers then.
constexpr std::chrono::seconds kAnswerTime{5};

struct Pair {
  base::UniqueFd ours;
  base::UniqueFd theirs;
};

base::Result<Pair> make_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return base::os_error("socketpair");
  }
  return Pair{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

wire::ExecRequest request_of(const Shells::Start& how, const wire::Credentials& credentials,
                             bool reports_jobs) {
  wire::ExecRequest request;
  request.path = how.programs + "/airlock-shell";
  request.argv = {"airlock-shell", "/bin/bash", how.programs + "/airlock-shell.so",
                  how.programs + "/airlock-shell-receiver.so"};
  if (reports_jobs) request.argv.add("report");
  for (const auto& entry : how.env) request.env.add(entry);
  request.cwd = how.cwd;
  request.fd_numbers = {0, 1, 2, kChannelInHost};
  request.state = wire::capture_process_state();
  request.state.blocked_signals = 0;
  request.state.ignored_signals = 0;
  request.state.pending_signals = 0;
  request.state.session_leader = true;
  request.credentials = credentials;
  return request;
}

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

struct Shells::Shell {
  std::uint64_t number = 0;
  /// Of the host's job: while it is open the host lives.
  base::UniqueFd job;
  std::unique_ptr<Handover> channel;
  /// What it was told last.
  contexts::Environment env;
  std::string cwd;
  std::map<std::uint64_t, Question> questions;
};

bool Shells::Key::operator<(const Key& other) const {
  const auto all = [](const Key& key) {
    const auto& who = key.credentials;
    return std::tie(key.name, who.uid, who.gid, who.groups);
  };
  return all(*this) < all(other);
}

Handover* Shells::find(const Key& key) {
  const auto found = shells_.find(key);
  return found == shells_.end() ? nullptr : found->second->channel.get();
}

std::vector<Shells::Key> Shells::keys() const {
  std::vector<Key> keys;
  for (const auto& [key, shell] : shells_) keys.push_back(key);
  return keys;
}

std::set<std::uint64_t> Shells::hosts() const {
  std::set<std::uint64_t> hosts;
  for (const auto& [key, shell] : shells_) hosts.insert(shell->number);
  for (const auto& shell : ending_) hosts.insert(shell->number);
  return hosts;
}

base::Result<Handover*> Shells::start(const Key& key, Handover& spawner, Start how) {
  if (shells_.size() >= kMost) {
    return base::failure("start shell '" + key.name + "'", EAGAIN,
                         "this context has " + std::to_string(kMost) +
                             " shells already; 'airlock " + "shell reset' ends one");
  }
  if (prepare_) {
    if (auto prepared = prepare_(); !prepared) return tl::unexpected<base::Error>(prepared.error());
    prepare_ = nullptr;
  }
  auto channel = make_pair(SOCK_SEQPACKET);
  auto connection = make_pair(SOCK_STREAM);
  if (!channel || !connection) {
    return tl::unexpected<base::Error>((channel ? connection : channel).error());
  }
  std::vector<base::UniqueFd> fds;
  for (int i = 0; i < 3; ++i) fds.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  fds.push_back(std::move(channel->theirs));
  auto request = request_of(how, key.credentials, static_cast<bool>(reports_.on_ended));
  auto given = spawner.give({how.job, std::move(request)}, connection->theirs, std::move(fds));
  if (!given) return tl::unexpected<base::Error>(given.error());
  if (reports_.on_started) reports_.on_started(key, how.job);
  auto shell = std::make_shared<Shell>();
  shell->number = how.job;
  shell->job = std::move(connection->ours);
  shell->env = std::move(how.env);
  shell->cwd = std::move(how.cwd);
  // Posted, as both callbacks are the channel's own: what they do may destroy it.
  const std::weak_ptr<Shell> weak = shell;
  shell->channel = std::make_unique<Handover>(
      io_, channel->ours.borrow(),
      [self = weak_from_this(), weak](const wire::Frame& frame) {
        const auto shells = self.lock();
        const auto alive = weak.lock();
        if (shells && alive) shells->take(*alive, frame);
      },
      [self = weak_from_this(), weak, &io = io_] {
        boost::asio::post(io, [self, weak] {
          if (const auto shells = self.lock()) shells->forget(weak);
        });
      });
  return (shells_[key] = std::move(shell))->channel.get();
}

void Shells::forget(const std::weak_ptr<Shell>& ended) {
  const auto shell = ended.lock();
  if (!shell) return;
  std::erase_if(shells_, [&shell](const auto& each) { return each.second == shell; });
  std::erase(ending_, shell);
  while (!shell->questions.empty()) {
    answer(*shell, shell->questions.begin()->first, base::failure("the shell has ended", ENOENT));
  }
}

void Shells::update(const EnvOf& env_of, const std::string& cwd) {
  for (auto& [key, shell] : shells_) {
    auto env = env_of(key.credentials);
    wire::ShellUpdate update = difference(shell->env, env);
    if (cwd != shell->cwd) update.cwd = cwd;
    shell->env = std::move(env);
    shell->cwd = cwd;
    if (update != wire::ShellUpdate{}) (void)shell->channel->tell(update);
  }
}

void Shells::will_change(const std::vector<std::string>& names, bool folder) {
  for (auto& [key, shell] : shells_) {
    // A value that none has: whatever comes is different.
    for (const auto& name : names) set_variable(shell->env, name, {"\0", 1});
    if (folder) shell->cwd.clear();
  }
}

void Shells::ask(const Key& key, wire::ShellOrder::Action action, Then then) {
  const auto found = shells_.find(key);
  if (found == shells_.end()) {
    return then(base::failure("there is no shell '" + key.name + "'", ENOENT,
                              "'airlock shells' lists them"));
  }
  const auto shell = found->second;
  const auto serial = next_serial_++;
  if (auto told = shell->channel->tell(wire::ShellOrder{serial, action}); !told) {
    return then(tl::unexpected<base::Error>(told.error()));
  }
  auto deadline = std::make_unique<boost::asio::steady_timer>(io_, kAnswerTime);
  deadline->async_wait([weak = std::weak_ptr(shell), serial](boost::system::error_code error) {
    const auto alive = weak.lock();
    if (error || !alive) return;
    answer(*alive, serial, base::failure("the shell does not answer", ETIMEDOUT));
  });
  shell->questions.emplace(serial, Question{std::move(then), std::move(deadline)});
  if (action != wire::ShellOrder::Action::reset) return;
  ending_.push_back(shell);
  shells_.erase(found);
}

void Shells::take(Shell& shell, const wire::Frame& frame) const {
  if (frame.type == wire::MessageType::job_ended && reports_.on_ended) {
    if (const auto end = wire::decode<wire::JobEnded>(frame.payload)) reports_.on_ended(*end);
  }
  if (frame.type == wire::MessageType::job_refused && reports_.on_refused) {
    if (const auto why = wire::decode<wire::JobRefused>(frame.payload)) reports_.on_refused(*why);
  }
  if (frame.type != wire::MessageType::shell_state) return;
  auto state = wire::decode<wire::ShellState>(frame.payload);
  if (state) answer(shell, state->serial, std::move(*state));
}

void Shells::answer(Shell& shell, std::uint64_t serial, base::Result<wire::ShellState> state) {
  auto question = shell.questions.extract(serial);
  if (!question.empty()) question.mapped().then(std::move(state));
}

wire::ShellUpdate difference(const contexts::Environment& before,
                             const contexts::Environment& now) {
  wire::ShellUpdate update;
  std::set<std::string_view> names;
  for (const auto& entry : now) {
    names.insert(name_in(entry));
    if (std::find(before.begin(), before.end(), entry) == before.end()) update.set.add(entry);
  }
  for (const auto& entry : before) {
    if (!names.contains(name_in(entry))) update.unset.add(name_in(entry));
  }
  return update;
}

}  // namespace routerd
