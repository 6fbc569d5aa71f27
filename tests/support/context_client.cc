#include "tests/support/context_client.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "wire/limits.h"

namespace support {

std::string programs_folder() {
  const std::string own = value_of(base::read_link("/proc/self/exe"));
  return own.substr(0, own.rfind('/'));
}

std::string probe_program() { return programs_folder() + "/airlock-test-probe"; }

wire::Frame Job::next() {
  for (;;) {
    if (!await_readable(connection_.borrow())) throw std::runtime_error("no answer in time");
    auto frame = value_of(receiver_.receive(connection_.borrow()));
    if (frame) return std::move(*frame);
  }
}

void Job::throw_unexpected(const wire::Frame& frame) {
  std::string text = "unexpected message " + std::to_string(static_cast<int>(frame.type));
  if (auto refused = wire::decode<wire::NotStarted>(frame.payload);
      refused && frame.type == wire::MessageType::not_started) {
    text += ": " + refused->message;
  }
  throw std::runtime_error(text);
}

bool Job::is_closed_by_init() {
  char byte = 0;
  return await_readable(connection_.borrow()) &&
         ::recv(connection_.borrow(), &byte, 1, MSG_PEEK) <= 0;
}

TestContext::TestContext(contexts::Tier tier,
                         const std::function<void(contexts::ContextSpec&)>& change) {
  runtime_ = std::make_unique<contexts::RuntimeDir>(
      value_of(contexts::RuntimeDir::open(folder_ / "runtime")));
  contexts::ContextSpec spec;
  spec.name = "user";
  if (tier == contexts::Tier::none) spec.isolation = contexts::Isolation::none;
  if (change) change(spec);
  context_ =
      value_of(contexts::Context::create(std::move(spec), {*runtime_, programs_folder(), tier}));
  if (auto tried = context_->await_walls(); !tried)
    throw std::runtime_error(tried.error().message());
}

wire::ExecRequest TestContext::request(const std::vector<std::string>& argv) {
  wire::ExecRequest request;
  request.path = argv.front();
  for (const auto& word : argv) request.argv.add(word);
  request.env = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  request.cwd = "/";
  request.state.group_leader = true;
  request.credentials.uid = ::geteuid();
  request.credentials.gid = ::getegid();
  return request;
}

wire::ExecRequest TestContext::shell(const std::string& script) {
  return request({"/bin/sh", "-c", script});
}

wire::ExecRequest TestContext::probe_request() {
  auto made = request({probe_program()});
  made.argv = {};
  return made;
}

// The init reads until EAGAIN, as routerd's accepted sockets let it.
Job TestContext::start(wire::ExecRequest request, const std::vector<PassedFd>& fds,
                       wire::Confinement confinement) {
  return start_on(stream_pair(SOCK_NONBLOCK), std::move(request), fds, std::move(confinement));
}

Job TestContext::start_with_signal(wire::ExecRequest request, const wire::Signal& early) {
  auto pair = stream_pair(SOCK_NONBLOCK);
  if (!wire::send_message(pair.ours.borrow(), early)) throw std::runtime_error("send a signal");
  return start_on(std::move(pair), std::move(request), {});
}

Job TestContext::start_on(SocketPair pair, wire::ExecRequest request,
                          const std::vector<PassedFd>& fds, wire::Confinement confinement) {
  std::vector<int> numbers;
  request.fd_numbers.clear();
  for (const auto& passed : fds) {
    numbers.push_back(passed.fd);
    request.fd_numbers.push_back(passed.number);
  }
  numbers.push_back(pair.theirs.borrow());
  const std::uint64_t job = next_job_++;
  const auto send = [&](wire::MessageType type, const std::string& payload, std::size_t count) {
    const std::vector<int> part(numbers.begin(), numbers.begin() + static_cast<long>(count));
    numbers.erase(numbers.begin(), numbers.begin() + static_cast<long>(count));
    auto sent = wire::send_datagram(context_->channel(), type, payload, part);
    if (!sent) throw std::runtime_error(sent.error().message());
  };
  while (numbers.size() >= wire::kMaxFdsPerMessage) {
    send(wire::MessageType::spawn_fds, wire::encode(wire::SpawnFds{job}),
         wire::kMaxFdsPerMessage - 1);
  }
  send(wire::MessageType::spawn,
       wire::encode(wire::Spawn{job, std::move(request), std::move(confinement)}), numbers.size());
  return {job, std::move(pair.ours)};
}

wire::NotStarted TestContext::refusal_of(wire::ExecRequest request) {
  const bool gives_terminal = request.tty == wire::TtyMode::hand_over;
  Job job = start(std::move(request));
  if (gives_terminal) job.give_terminal();
  auto frame = job.next();
  if (frame.type == wire::MessageType::started) frame = job.next();
  if (frame.type != wire::MessageType::not_started) throw std::runtime_error("it was started");
  return value_of(wire::decode<wire::NotStarted>(frame.payload));
}

Output TestContext::run(wire::ExecRequest request, wire::Confinement confinement) {
  auto pipe = make_pipe();
  Job job = start(std::move(request), {{pipe.write.borrow(), 1}, {pipe.write.borrow(), 2}},
                  std::move(confinement));
  pipe.write.reset();
  job.expect<wire::Started>();
  std::string text = read_to_end(pipe.read.borrow());
  return {job.expect<wire::Exited>(), std::move(text)};
}

std::map<std::string, std::string> TestContext::probe(wire::ExecRequest request,
                                                      const std::vector<PassedFd>& fds,
                                                      std::uint32_t report) {
  auto pipe = make_pipe();
  auto all = fds;
  all.push_back({pipe.write.borrow(), report});
  if (request.argv.empty()) request.argv = {"probe", std::to_string(report)};
  const bool gives_terminal = request.tty == wire::TtyMode::hand_over;
  Job job = start(std::move(request), all);
  pipe.write.reset();
  if (gives_terminal) job.give_terminal();
  job.expect<wire::Started>();
  std::istringstream lines(read_to_end(pipe.read.borrow()));
  const auto exited = job.expect<wire::Exited>();
  std::map<std::string, std::string> report_lines;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    report_lines.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  if (exited.wait_status != 0 || report_lines["end"] != "yes") {
    throw std::runtime_error("the probe ended with wait status " +
                             std::to_string(exited.wait_status));
  }
  return report_lines;
}

wire::JobList TestContext::list_jobs() {
  static std::uint64_t serial = 0;
  tell_init(wire::ListJobs{++serial});
  std::optional<wire::Frame> frame;
  do {  // routerd hears of jobs that are refused, too
    if (!await_readable(context_->channel())) throw std::runtime_error("no list of jobs in time");
    frame = value_of(wire::receive_datagram(context_->channel()));
    if (!frame) throw std::runtime_error("no list of jobs");
  } while (frame->type == wire::MessageType::job_refused);
  auto list = value_of(wire::decode<wire::JobList>(frame->payload));
  if (list.serial != serial) throw std::runtime_error("a list nobody asked for");
  return list;
}

void TestContext::await_no_jobs() {
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    if (list_jobs().jobs.empty()) return;
  }
  throw std::runtime_error("a job is left");
}

}  // namespace support
