#include "routerd/daemon.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "base/file.h"
#include "contexts/probe.h"
#include "routerd/control.h"
#include "routerd/drain.h"
#include "routerd/farm_plan.h"
#include "routerd/launch.h"
#include "routerd/program.h"
#include "routerd/tier_advice.h"
#include "routerd/user.h"
#include "routerd/working_folder.h"

namespace routerd {
namespace {

/// root, the daemon's own user, and the group airlock may use the control socket.
bool may_control(const Peer& peer) {
  if (peer.credentials.uid == 0 || peer.credentials.uid == ::geteuid()) return true;
  const group* airlock = ::getgrnam("airlock");
  return airlock != nullptr && peer.is_in_group(airlock->gr_gid);
}

}  // namespace

Daemon::Daemon(contexts::RuntimeDir runtime, DaemonOptions options)
    : signals_(io_),
      probe_end_(io_),
      runtime_(std::move(runtime)),
      options_(std::move(options)),
      limits_timer_(io_),
      router_([this](const std::string& name) { return find(name); }, log_,
              {own_environment(), options_.secrets, options_.development, options_.profiles,
               options_.audit.with_argv}) {}

// Contexts first: their listeners belong to the io_context.
Daemon::~Daemon() {
  services_.reset();
  hosted_.clear();
}

base::Result<void> Daemon::choose_tier() {
  contexts::remove_stale_cgroups();
  using contexts::Tier;
  if (const auto forced = contexts::parse_tier(options_.tier)) {
    tier_ = *forced;
    if (tier_ != Tier::none) {
      auto probed = contexts::probe_one(tier_, runtime_, options_.programs);
      if (!probed) return tl::unexpected<base::Error>(probed.error());
      probed_ = std::move(*probed);
    }
  } else {
    probed_ = contexts::probe_tier(runtime_, options_.programs, tier_reasons_);
    tier_ = probed_.tier;
  }
  if (tier_ <= options_.required) return {};
  std::string text =
      "isolation tier " + std::string(contexts::name_of(tier_)) +
      (options_.tier.empty() ? " is the strongest that works here" : " was asked for") + ", but " +
      std::string(contexts::name_of(options_.required)) + " or stronger is required";
  if (options_.development) {
    spdlog::warn("DEVELOPMENT: contexts are not isolated: {}; {}", text, weakness_of(tier_));
    return {};
  }
  std::string reasons;
  for (const auto& reason : tier_reasons_) reasons += "; " + reason;
  return base::failure(text, 0,
                       way_to_isolation() + "; or accept it by --require-tier " +
                           std::string(contexts::name_of(tier_)) +
                           " or --development ('airlock doctor' tells what it lacks)" + reasons);
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

bool Daemon::is_in_context(int socket, pid_t pid) const {
  bool can_be_reached_from_one = false;
  for (const auto& [name, hosted] : hosted_) {
    const auto tier = hosted->context->tier();
    if (contexts::is_isolated(tier) || tier == contexts::Tier::none) continue;
    can_be_reached_from_one = true;
    if (hosted->context->is_ancestor_of(pid)) return true;
  }
  // Of one that has ended nobody can tell where it came from.
  return can_be_reached_from_one && !contexts::is_peer_alive(socket);
}

std::shared_ptr<FrameSession> Daemon::accept_client(base::UniqueFd socket) {
  auto peer = peer_of(socket.borrow());
  const char* reason = nullptr;
  if (!peer || !may_control(*peer)) {
    reason = "the control socket is for root and the group airlock";
  } else if (is_in_context(socket.borrow(), peer->pid)) {
    reason = "the control socket is not for programs of a context";
  }
  if (reason != nullptr) {
    if (trail_)
      trail_->client_refused(peer ? peer->pid : 0, peer ? peer->credentials.uid : 0, reason);
    (void)wire::send_message(socket.borrow(), wire::NotStarted{126, EACCES, reason}, {},
                             MSG_DONTWAIT);
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

bool Daemon::run() {
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.add(SIGHUP);
  await_signal();
  await_end_of_probe();
  io_.run();
  drain_.reset();
  services_.reset();
  for (const auto& [name, hosted] : hosted_) hosted->context->begin_destroy();
  while (!hosted_.empty()) (void)destroy(hosted_.begin()->first);
  if (trail_) trail_->daemon_stopped();
  return !has_killed_jobs_;
}

void Daemon::await_end_of_probe() {
  if (!probed_.ending) return;
  probe_end_.assign(::fcntl(probed_.ending->init_pidfd(), F_DUPFD_CLOEXEC, 3));
  probe_end_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this](boost::system::error_code error) {
                          if (!error) probed_.ending.reset();
                        });
}

// Routers stay open: what agents start to clean up belongs to their grace. Services end after it.
void Daemon::drain() {
  control_.reset();
  drain_ = std::make_unique<Drain>(*this, io_, options_.stop_grace, [this](int jobs_left) {
    has_killed_jobs_ = jobs_left != 0;
    if (jobs_left > 0) spdlog::warn("killing {} jobs that did not end in time", jobs_left);
    if (jobs_left < 0) spdlog::warn("killing jobs of contexts that do not answer");
    stop();
  });
}

base::Result<void> Daemon::open_audit() {
  if (options_.audit.folder.empty()) return {};
  auto log = audit::AuditLog::open(options_.audit);
  if (!log) return tl::unexpected<base::Error>(log.error());
  trail_ = std::make_unique<audit::Trail>(std::move(*log));
  trail_->daemon_started(contexts::name_of(tier_));
  log_.follow([this](const RouteRecord& record) { trail_->exec_decided(record); });
  watch_limits();
  return {};
}

void Daemon::watch_limits() {
  limits_timer_.expires_after(std::chrono::seconds(1));
  limits_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (const auto& [name, hosted] : hosted_) trail_->look_at_limits(*hosted->context);
    watch_limits();
  });
}

void Daemon::await_signal() {
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    if (signal == SIGHUP && reload_) {
      spdlog::info("signal {}: reading the configuration again", signal);
      (void)reload_();
    } else {
      spdlog::info("signal {}: ending all contexts", signal);
      if (drain_ || options_.is_embedded) {
        stop();
      } else {
        drain();
      }
    }
    await_signal();
  });
}

void Daemon::stop() {
  if (std::exchange(is_stopping_, true) || services_ == nullptr) return io_.stop();
  services_->stop_all([this] { io_.stop(); });
}

void Daemon::set_api_settings(std::unique_ptr<ApiSettings> settings) {
  api_settings_ = std::move(settings);
}

void Daemon::set_services(std::unique_ptr<services::Supervisor> services) {
  services_ = std::move(services);
}

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

/// Null where the context has none.
base::Result<std::unique_ptr<FarmKeeper>> Daemon::make_farm(contexts::Context& context) {
  auto root = context.take_farm_root();
  if (!root) return nullptr;
  auto farm = contexts::Farm::create(std::move(root), options_.programs + "/airlock-stub",
                                     context.airlock_folder());
  if (!farm) return tl::unexpected<base::Error>(farm.error());
  auto keeper = FarmKeeper::create(io_, std::move(*farm));
  if (!keeper) return keeper;
  for (const auto& folder : system_bin_folders()) {
    if (auto covered = (*keeper)->cover(folder); !covered) {
      return tl::unexpected<base::Error>(covered.error());
    }
  }
  return keeper;
}

/// Of a configured context that nobody has used yet; another one keeps its name (EEXIST).
base::Result<void> Daemon::free_name(const std::string& name) {
  const HostedContext* existing = find(name);
  if (existing == nullptr) return {};
  if (!existing->is_claimable) {
    return base::failure("context '" + name + "'", EEXIST,
                         "choose another name or remove it first");
  }
  (void)destroy(name);
  return {};
}

/// What `spec` leaves to the daemon.
base::Result<void> Daemon::complete(contexts::ContextSpec& spec) const {
  if (!spec.is_platform) {
    spec.hide.insert(spec.hide.end(), options_.hide.begin(), options_.hide.end());
  }
  if (trail_) spec.hide.push_back(options_.audit.folder);
  if (spec.user.empty()) return {};
  auto user = find_user(spec.user);
  if (!user) return tl::unexpected<base::Error>(user.error());
  spec.user_ids = *user;
  return {};
}

/// What its programs' children are routed by.
base::Result<void> Daemon::add_route(HostedContext& hosted) {
  const std::string& name = hosted.spec().name;
  auto router = open_router(name);
  if (!router) return tl::unexpected<base::Error>(router.error());
  hosted.router = std::move(*router);
  hosted.stub_path = runtime_.view(name) + "/airlock-stub";
  hosted.stub_id = file_id(hosted.stub_path);
  auto farm = make_farm(*hosted.context);
  if (!farm) return tl::unexpected<base::Error>(farm.error());
  hosted.farm = std::move(*farm);
  if (auto tried = hosted.context->await_walls(); !tried) return tried;
  hosted.offers = offers_of(*hosted.context);
  return {};
}

/// Its own way to the API.
base::Result<void> Daemon::add_door(HostedContext& hosted) {
  const std::string& name = hosted.spec().name;
  const auto on_refused = [this, name](int socket) {
    const auto peer = peer_of(socket);
    if (!trail_ || !peer) return;
    trail_->client_refused(peer->pid, peer->credentials.uid,
                           "the api.sock of context '" + name + "' is for its own programs");
  };
  auto door =
      open_door(io_, door_taker_, *hosted.context, runtime_.view(name) + "/api.sock", on_refused);
  if (!door) return tl::unexpected<base::Error>(door.error());
  hosted.door = std::move(*door);
  return {};
}

/// From here on it runs programs.
void Daemon::open_for_jobs(HostedContext& hosted) {
  const std::string name = hosted.spec().name;
  hosted.handover = std::make_unique<Handover>(
      io_, hosted.context->channel(),
      [this, name](const wire::Frame& frame) { take_init_frame(name, frame); },
      [this, name] { context_ended(name); });
  hosted.handover->cap(hosted.context->rlimit_caps());
  Shells::Reports reports;
  if (trail_) {
    reports.on_started = [this, name](const auto& shell, std::uint64_t job) {
      trail_->shell_started(name, shell.name, shell.credentials.uid, job);
    };
    reports.on_ended = [this, name](const auto& end) { trail_->command_ended(name, end); };
    reports.on_refused = [this, name](const auto& why) { trail_->command_refused(name, why); };
  }
  hosted.shells = std::make_shared<Shells>(
      io_, [this, name] { return runtime_.add_shell(name, options_.programs); },
      std::move(reports));
  hosted.add_file_tool = [this, name] { return runtime_.add_file_tool(name, options_.programs); };
  hosted.lifetime = make_lifetime(*this, name);
}

base::Result<HostedContext*> Daemon::create(contexts::ContextSpec spec) {
  const std::string name = spec.name;
  const bool has_route = !spec.child_context.empty();
  auto done = contexts::validate(spec);
  if (done) done = free_name(name);
  if (done) done = complete(spec);
  if (!done) return tl::unexpected<base::Error>(done.error());
  auto has_new_folder = make_working_folder(spec);
  if (!has_new_folder) return tl::unexpected<base::Error>(has_new_folder.error());
  auto hosted = std::make_unique<HostedContext>();
  auto context = contexts::Context::create(std::move(spec), {.runtime = runtime_,
                                                             .programs = options_.programs,
                                                             .tier = tier_,
                                                             .reports_jobs = trail_ != nullptr,
                                                             .marks_sockets = options_.serves_api,
                                                             .own_rootfs = !options_.is_embedded,
                                                             .bin_folders = system_bin_folders()});
  if (context) {
    hosted->context = std::move(*context);
    done = settle_working_folder(*hosted->context, *has_new_folder);
    if (done && has_route) done = add_route(*hosted);
    if (done && options_.serves_api) done = add_door(*hosted);
  } else {
    done = tl::unexpected<base::Error>(context.error());
  }
  if (!done) {
    hosted.reset();  // ends it; after that nothing of it may stay
    runtime_.remove(name);
    return tl::unexpected<base::Error>(done.error());
  }
  open_for_jobs(*hosted);
  HostedContext& made = *hosted_.emplace(name, std::move(hosted)).first->second;
  follow_installed_programs();
  if (trail_) trail_->context_created(*made.context);
  spdlog::debug("context={} op=create tier={}", name, contexts::name_of(made.context->tier()));
  return &made;
}

void Daemon::follow_installed_programs() {
  for (const auto& [name, agents] : hosted_) {
    if (!agents->farm) continue;
    const HostedContext* children = find(agents->spec().child_context);
    const bool is_apart = children != nullptr && children->context->has_own_rootfs();
    agents->farm->follow(is_apart ? runtime_.upper(children->spec().name) : "");
  }
}

base::Result<contexts::Destroyed> Daemon::destroy(const std::string& name) {
  auto node = hosted_.extract(name);
  if (node.empty()) {
    return base::failure("context '" + name + "'", ENOENT, "'airlock ctx ls' lists them");
  }
  // Another context of this name may want another filter.
  for (const auto& [other, each] : hosted_) each->env_routes.clear();
  follow_installed_programs();
  HostedContext& hosted = *node.mapped();
  hosted.router.reset();
  hosted.door.reset();
  hosted.handover.reset();
  if (trail_) trail_->context_ending(*hosted.context);
  const auto result = hosted.context->destroy();
  if (trail_) trail_->context_destroyed(name, result.survivors);
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
  if (hosted == nullptr) return;
  if (frame.type == wire::MessageType::job_refused) {
    if (auto late = wire::decode<wire::JobRefused>(frame.payload)) {
      log_.add_failure(late->job, late->refusal.message);
    }
    return;
  }
  if (frame.type == wire::MessageType::job_ended && trail_) {
    if (auto end = wire::decode<wire::JobEnded>(frame.payload)) trail_->job_ended(name, *end);
  }
  if (frame.type != wire::MessageType::job_list) return;
  auto list = wire::decode<wire::JobList>(frame.payload);
  if (!list) return;
  auto question = hosted->job_questions.extract(list->serial);
  if (!question.empty()) question.mapped()(std::move(*list));
}

}  // namespace routerd
