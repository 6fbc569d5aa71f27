#include "routerd/services/service.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "contexts/env_filter.h"
#include "routerd/launch.h"

namespace routerd::services {

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kFirstListenFd = 3;         // SD_LISTEN_FDS_START, sd_listen_fds(3)
constexpr rlim_t kUsualOpenFiles = 1024;  // what select(2) can handle
constexpr std::size_t kLogBlock = 64 << 10;

/// The daemon raised its own limit; a service starts with the usual one and may raise it.
wire::Rlimit open_files_limit() {
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  return {RLIMIT_NOFILE, std::min(kUsualOpenFiles, own.rlim_max), own.rlim_max};
}

std::string timestamp() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

Service::Service(Host& host, ServiceSpec spec, Identity identity)
    : host_(host),
      spec_(std::move(spec)),
      identity_(std::move(identity)),
      machine_(spec_),
      log_(host.log_folder + "/" + spec_.name + ".log", spec_.log),
      deadline_(host.io),
      output_(host.io) {}

base::Result<std::unique_ptr<Service>> Service::create(Host& host, ServiceSpec spec,
                                                       Identity identity) {
  std::unique_ptr<Service> service(new Service(host, std::move(spec), std::move(identity)));
  if (auto opened = service->open_pipe(); !opened) {
    return tl::unexpected<base::Error>(opened.error());
  }
  return service;
}

// One pipe for all runs: what a program wrote before it died is read whoever runs next.
base::Result<void> Service::open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("service '" + spec_.name + "': pipe");
  base::UniqueFd reader(ends[0]);
  output_writer_.reset(ends[1]);
  // So that the service can open /dev/stdout.
  (void)::fchown(ends[1], identity_.credentials.uid, identity_.credentials.gid);
  ::fcntl(reader.borrow(), F_SETFL, O_NONBLOCK);
  output_.assign(reader.release());
  await_output();
  return {};
}

void Service::start() {
  machine_.start(Clock::now());
  act();
}

void Service::restart() {
  machine_.restart(Clock::now());
  act();
}

void Service::stop(std::function<void()> on_stopped) {
  on_stopped_ = std::move(on_stopped);
  machine_.stop(Clock::now());
  act();
}

void Service::act() {
  for (const Action action : machine_.take_actions()) {
    switch (action) {
      case Action::spawn:
        spawn();
        break;
      case Action::ask_to_stop:
        prober_.reset();
        note("asked to stop");
        if (run_) run_->signal(spec_.stop_signal);
        break;
      case Action::kill:
        note("does not stop, so it is killed");
        if (run_) run_->signal(SIGKILL);
        break;
    }
  }
  arm_deadline();
  if (machine_.is_running()) return;
  if (const auto on_stopped = std::exchange(on_stopped_, nullptr)) on_stopped();
}

void Service::arm_deadline() {
  deadline_.cancel();
  const auto deadline = machine_.deadline();
  if (!deadline) return;
  deadline_.expires_at(*deadline);
  deadline_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    machine_.expired(Clock::now());
    act();
  });
}

void Service::spawn() {
  auto started = run(spec_.command, true, [this](const End& end) { ended(end); });
  if (!started) {
    const std::string why = "not started: " + started.error().message();
    // Not now: the machine is being asked for its actions.
    return boost::asio::post(host_.io, [this, why, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) ended({false, why});
    });
  }
  run_ = std::move(*started);
  note("started");
  const Prober::Means means{host_.io, host_.ports,
                            [this](const std::vector<std::string>& command, Run::OnEnd on_end) {
                              return run(command, false, std::move(on_end));
                            }};
  prober_ = std::make_unique<Prober>(means, spec_, [this] {
    machine_.became_ready(Clock::now());
    note("ready");
    spdlog::info("service={} state=ready pid={}", spec_.name, pid());
    act();
  });
}

void Service::ended(const End& end) {
  prober_.reset();
  run_.reset();
  for (const auto& port : spec_.ports) {
    if (auto* held = host_.ports.find(port.key)) held->restore();
  }
  take_output();
  const bool was_asked = machine_.state() == State::stopping;
  machine_.ended(Clock::now(), end);
  note(machine_.last_end());
  if (!was_asked) {
    spdlog::warn("service={} ended=\"{}\" state={} failures={}", spec_.name, machine_.last_end(),
                 name_of(machine_.state()), machine_.failures());
  }
  if (machine_.failures() == Machine::kCrashLoop) {
    spdlog::error("service={} crash loop: ended {} times in a row, last: {}; see 'airlock logs {}'",
                  spec_.name, machine_.failures(), machine_.last_end(), spec_.name);
  }
  act();
}

base::Result<std::shared_ptr<Run>> Service::run(const std::vector<std::string>& command,
                                                bool is_main, Run::OnEnd on_end) {
  wire::ExecRequest request = request_for(command);
  const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  std::vector<base::UniqueFd> fds;
  for (const int source : {null.borrow(), output_writer_.borrow(), output_writer_.borrow()}) {
    base::UniqueFd copy(::fcntl(source, F_DUPFD_CLOEXEC, 3));
    if (!copy) return base::os_error("pass descriptors");
    fds.push_back(std::move(copy));
  }
  request.fd_numbers = {0, 1, 2};
  contexts::Environment env;
  for (const auto& entry : host_.environment) {
    if (contexts::is_basic_name(entry.substr(0, entry.find('=')))) env.push_back(entry);
  }
  if (variable(env, "PATH").empty()) {
    set_variable(env, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  }
  set_variable(env, "HOME", identity_.home);
  set_variable(env, "USER", identity_.user);
  set_variable(env, "LOGNAME", identity_.user);
  set_variable(env, "SHELL", identity_.shell);
  if (spec_.is_api) set_variable(env, "AIRLOCK_RUNTIME_DIR", host_.airlock_folder());
  for (const auto& [name, value] : spec_.env) set_variable(env, name, value);
  if (is_main) add_ports(request, env, fds);
  for (const auto& entry : env) request.env.add(entry);
  return Run::start(host_.io, host_.launch, std::move(request), std::move(fds), std::move(on_end));
}

wire::ExecRequest Service::request_for(const std::vector<std::string>& command) const {
  wire::ExecRequest request;
  request.path = command.front();
  for (const auto& word : command) request.argv.add(word);
  request.cwd = spec_.cwd;
  request.search_path = true;
  request.is_service = true;
  if (spec_.is_api) request.path = host_.airlock_folder() + "/" + command.front();
  request.state.session_leader = true;
  request.state.rlimits = {open_files_limit()};
  request.credentials = identity_.credentials;
  return request;
}

void Service::add_ports(wire::ExecRequest& request, contexts::Environment& env,
                        std::vector<base::UniqueFd>& fds) const {
  if (spec_.ports.empty()) return;
  std::string ports;
  std::string names;
  int count = 0;
  for (const auto& port : spec_.ports) {
    const auto* held = host_.ports.find(port.key);
    if (held == nullptr) continue;
    const std::string number = std::to_string(port.key.number);
    ports +=
        (ports.empty() ? "" : ",") + std::string(ports::name_of(port.key.protocol)) + ":" + number;
    if (spec_.handing != Handing::listen_fds) continue;
    base::UniqueFd copy(::fcntl(held->socket(), F_DUPFD_CLOEXEC, 3));
    if (!copy) continue;
    fds.push_back(std::move(copy));
    request.fd_numbers.push_back(static_cast<std::uint32_t>(kFirstListenFd + count++));
    names += (names.empty() ? "" : ":") + (port.name.empty() ? number : port.name);
  }
  if (spec_.handing == Handing::listen_fds) {
    set_variable(env, "LISTEN_FDS", std::to_string(count));
    set_variable(env, "LISTEN_FDNAMES", names);
    set_variable(env, "LISTEN_PID", "0");  // the init puts in its pid
    return;
  }
  const std::string folder = host_.airlock_folder();
  set_variable(env, "AIRLOCK_PORTS", ports);
  set_variable(env, "AIRLOCK_PORTS_SOCKET", folder + "/ports-" + spec_.name + ".sock");
  add_preload(env, folder + "/libairlock-bind.so");
}

void Service::await_output() {
  output_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](boost::system::error_code error) {
                       if (error) return;
                       take_output();
                       await_output();
                     });
}

// One block at a time: a service that floods its log must not keep others waiting.
void Service::take_output() {
  std::string block(kLogBlock, '\0');
  const ssize_t got = ::read(output_.native_handle(), block.data(), block.size());
  if (got > 0) add_to_log(std::string_view(block).substr(0, static_cast<std::size_t>(got)));
}

void Service::note(const std::string& text) {
  add_to_log("airlock: " + timestamp() + " " + spec_.name + ": " + text + "\n");
}

void Service::add_to_log(std::string_view bytes) {
  const auto dropped = log_.dropped();
  log_.append(bytes);
  const bool has_error = log_.dropped() != dropped;
  if (has_error && !has_log_error_) {
    spdlog::error("service={} its log is not kept: {}; the service goes on", spec_.name,
                  log_.last_error());
  }
  has_log_error_ = has_error;
  // A follower whose client is gone ends itself meanwhile.
  for (auto next = followers_.begin(); next != followers_.end();) {
    const Follower follower = (next++)->second;
    follower(bytes);
  }
}

std::uint64_t Service::follow(Follower follower) {
  followers_.emplace(next_follower_, std::move(follower));
  return next_follower_++;
}

void Service::unfollow(std::uint64_t number) { followers_.erase(number); }

}  // namespace routerd::services
