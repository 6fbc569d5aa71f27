#include "routerd/daemon.h"

#include <grp.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "base/file.h"
#include "routerd/control.h"
#include "routerd/program.h"
#include "routerd/user.h"

extern char** environ;

namespace routerd {
namespace {

contexts::Environment own_environment() {
  contexts::Environment env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  return env;
}

/// root, the daemon's own user, and the group airlock may use the control socket.
bool may_control(const Peer& peer) {
  if (peer.credentials.uid == 0 || peer.credentials.uid == ::geteuid()) return true;
  const group* airlock = ::getgrnam("airlock");
  return airlock != nullptr && peer.is_in_group(airlock->gr_gid);
}

}  // namespace

Daemon::Daemon(contexts::RuntimeDir runtime, DaemonOptions options)
    : signals_(io_),
      runtime_(std::move(runtime)),
      options_(std::move(options)),
      router_([this](const std::string& name) { return find(name); }, log_,
              {own_environment(), options_.secrets}) {}

// Contexts first: their listeners belong to the io_context.
Daemon::~Daemon() { hosted_.clear(); }

base::Result<void> Daemon::choose_tier() {
  using contexts::Tier;
  if (const auto forced = contexts::parse_tier(options_.tier)) {
    tier_ = *forced;
    if (tier_ == Tier::none) return {};
    return contexts::probe_one(tier_, runtime_, options_.programs);
  }
  tier_ = contexts::probe_tier(runtime_, options_.programs, tier_reasons_);
  if (contexts::is_isolated(tier_)) return {};
  std::string reasons;
  for (const auto& reason : tier_reasons_) reasons += "; " + reason;
  if (!options_.development) {
    return base::failure(
        "no tier that isolates is available", ENOTSUP,
        "in a container add --cap-add SYS_ADMIN, on a host allow unprivileged user namespaces; "
        "--development goes on without isolation" +
            reasons);
  }
  spdlog::warn("DEVELOPMENT: contexts are not isolated from each other{}", reasons);
  return {};
}

base::Result<void> Daemon::listen() {
  auto opened = Listener::open(io_, runtime_.control_socket(), 0660, [this](base::UniqueFd socket) {
    return accept_client(std::move(socket));
  });
  if (!opened) return tl::unexpected<base::Error>(opened.error());
  control_ = std::move(*opened);
  if (const group* airlock = ::getgrnam("airlock"); airlock != nullptr && ::geteuid() == 0) {
    if (::chown(runtime_.control_socket().c_str(), 0, airlock->gr_gid) != 0) {
      return base::os_error("chown " + runtime_.control_socket());
    }
  }
  return {};
}

std::shared_ptr<FrameSession> Daemon::accept_client(base::UniqueFd socket) {
  auto peer = peer_of(socket.borrow());
  if (!peer || !may_control(*peer)) {
    const wire::NotStarted refusal{126, EACCES,
                                   "the control socket is for root and the group airlock"};
    (void)wire::send_message(socket.borrow(), refusal, {}, MSG_DONTWAIT);
    return nullptr;
  }
  return serve_client(*this, io_, *peer, std::move(socket));
}

void Daemon::adopt_client(base::UniqueFd socket) {
  auto peer = peer_of(socket.borrow());
  (void)base::set_nonblocking(socket.borrow(), true);
  auto session = serve_client(*this, io_, peer ? *peer : Peer{}, std::move(socket));
  session->on_close([this] {
    if (!is_kept_) stop();
  });
  session->start();
}

void Daemon::run() {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.add(SIGHUP);
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    spdlog::info("signal {}: ending all contexts", signal);
    stop();
  });
  io_.run();
  while (!hosted_.empty()) (void)destroy(hosted_.begin()->first);
}

void Daemon::stop() { io_.stop(); }

HostedContext* Daemon::find(const std::string& name) {
  const auto found = hosted_.find(name);
  return found == hosted_.end() ? nullptr : found->second.get();
}

base::Result<std::unique_ptr<Listener>> Daemon::open_router(const std::string& name) {
  // Identity is which socket was used: each context has its own, and no other can reach it.
  const auto on_accept = [this, name](base::UniqueFd socket) {
    auto on_frame = [this, name](FrameSession& session, wire::Frame frame) {
      HostedContext* from = find(name);
      const auto accepted = session.accepted();
      auto connection = session.release();
      if (from != nullptr) router_.route(*from, std::move(frame), std::move(connection), accepted);
      return false;
    };
    return std::make_shared<FrameSession>(io_, std::move(socket), std::move(on_frame));
  };
  return Listener::open(io_, runtime_.view(name) + "/router.sock", 0666, on_accept);
}

namespace {

/// Creates the folder a context's programs start in, for their user, where it is missing.
base::Result<void> make_working_folder(const contexts::ContextSpec& spec) {
  const char* folder = spec.cwd.c_str();
  if (::mkdir(folder, 0755) != 0) {
    if (errno == EEXIST) return {};
    return base::os_error("create the working directory " + spec.cwd + " of context '" + spec.name +
                          "'");
  }
  if (::chmod(folder, 0755) != 0) return base::os_error("chmod " + spec.cwd);  // whatever the umask
  if (spec.user.empty()) return {};
  auto user = find_user(spec.user);
  if (!user) return tl::unexpected<base::Error>(user.error());
  if (::chown(folder, user->uid, user->gid) != 0) return base::os_error("chown " + spec.cwd);
  return {};
}

}  // namespace

base::Result<HostedContext*> Daemon::create(contexts::ContextSpec spec) {
  const std::string name = spec.name;
  if (auto valid = contexts::validate(spec); !valid)
    return tl::unexpected<base::Error>(valid.error());
  if (const HostedContext* existing = find(name)) {
    if (!existing->is_claimable) {
      return base::failure("context '" + name + "'", EEXIST,
                           "choose another name or remove it first");
    }
    (void)destroy(name);
  }
  if (auto made = make_working_folder(spec); !made)
    return tl::unexpected<base::Error>(made.error());
  const bool has_route = !spec.child_context.empty();
  auto context = contexts::Context::create(std::move(spec), {runtime_, options_.programs, tier_});
  if (!context) {
    runtime_.remove(name);
    return tl::unexpected<base::Error>(context.error());
  }
  auto hosted = std::make_unique<HostedContext>();
  hosted->context = std::move(*context);
  if (has_route) {
    auto router = open_router(name);
    if (!router) return tl::unexpected<base::Error>(router.error());
    hosted->router = std::move(*router);
    hosted->stub_id = file_id(runtime_.view(name) + "/airlock-stub");
  }
  hosted->handover = std::make_unique<Handover>(
      io_, hosted->context->channel(),
      [this, name](const wire::Frame& frame) { take_init_frame(name, frame); },
      [this, name] { context_ended(name); });
  spdlog::debug("context={} op=create tier={}", name, contexts::name_of(hosted->context->tier()));
  return hosted_.emplace(name, std::move(hosted)).first->second.get();
}

base::Result<contexts::Destroyed> Daemon::destroy(const std::string& name) {
  auto node = hosted_.extract(name);
  if (node.empty()) {
    return base::failure("context '" + name + "'", ENOENT, "'airlock ctx ls' lists them");
  }
  // Another context of this name may want another filter.
  for (const auto& [other, each] : hosted_) each->filters.clear();
  HostedContext& hosted = *node.mapped();
  hosted.router.reset();
  hosted.handover.reset();
  const auto result = hosted.context->destroy();
  runtime_.remove(name);
  spdlog::debug("context={} op=destroy survivors={}", name, result.survivors);
  return result;
}

// Deferred: the caller is the context's own Handover.
void Daemon::context_ended(const std::string& name) {
  spdlog::error("context={} its init ended unexpectedly; everything in it is gone", name);
  boost::asio::post(io_, [this, name] { (void)destroy(name); });
}

void Daemon::take_init_frame(const std::string& name, const wire::Frame& frame) {
  HostedContext* hosted = find(name);
  if (hosted == nullptr || frame.type != wire::MessageType::job_list) return;
  auto list = wire::decode<wire::JobList>(frame.payload);
  if (!list) return;
  auto question = hosted->job_questions.extract(list->serial);
  if (!question.empty()) question.mapped()(std::move(*list));
}

}  // namespace routerd
