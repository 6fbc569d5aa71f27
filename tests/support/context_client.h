#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "contexts/context.h"
#include "tests/support/fds.h"
#include "tests/support/temp_dir.h"
#include "wire/channel.h"

// A context and what routerd and a stub would say to its init. Everything throws
// std::runtime_error, so it serves forked children too.
namespace support {

/// Folder of this test program and of the airlock programs it is built with.
std::string programs_folder();
/// airlock-test-probe: see tests/support/probe.c.
std::string probe_program();

/// A descriptor and the number it is to have in the program.
struct PassedFd {
  int fd;
  std::uint32_t number;
};

/// The requester's end of one job.
class Job {
 public:
  Job(std::uint64_t id, base::UniqueFd connection) : id_(id), connection_(std::move(connection)) {}

  std::uint64_t id() const { return id_; }
  int connection() const { return connection_.borrow(); }

  /// The next frame; throws after the deadline, or if the connection ends.
  wire::Frame next();
  /// The next frame, which must be a Message.
  template <class Message>
  Message expect() {
    const auto frame = next();
    if (frame.type != wire::type_of<Message>()) throw_unexpected(frame);
    auto message = wire::decode<Message>(frame.payload);
    if (!message) throw std::runtime_error(message.error().message());
    return std::move(*message);
  }
  template <class Message>
  void send(const Message& message) {
    if (auto sent = wire::send_message(connection_.borrow(), message); !sent) {
      throw std::runtime_error(sent.error().message());
    }
  }
  /// As the leader of no session: there is nothing to be given up.
  void give_terminal() {
    expect<wire::GiveTerminal>();
    send(wire::TerminalGiven{});
  }
  /// The requester goes away.
  void disconnect() { connection_.reset(); }
  /// True when the init has closed its end, or does so in time.
  bool is_closed_by_init();

 private:
  [[noreturn]] static void throw_unexpected(const wire::Frame& frame);

  std::uint64_t id_;
  base::UniqueFd connection_;
  wire::Receiver receiver_;
};

/// What a program printed on 1 and 2, and how it ended.
struct Output {
  wire::Exited exited;
  std::string text;
};

/// A runtime folder of its own and one context in it.
class TestContext {
 public:
  /// "user" in tier `tier`; `change` may alter the spec first.
  explicit TestContext(contexts::Tier tier,
                       const std::function<void(contexts::ContextSpec&)>& change = {});

  contexts::Context& operator*() const { return *context_; }
  contexts::Context* operator->() const { return context_.get(); }
  const contexts::RuntimeDir& runtime() const { return *runtime_; }
  /// For a process that is going to be killed: the context lives on without its folder.
  void remove_folder() const { folder_.remove(); }

  /// A request for `argv` with argv[0] as its path, this process's credentials, cwd "/"; the
  /// program leads a group.
  static wire::ExecRequest request(const std::vector<std::string>& argv);
  /// "/bin/sh -c SCRIPT".
  static wire::ExecRequest shell(const std::string& script);
  /// A request for probe(), which adds the number of the report to argv.
  static wire::ExecRequest probe_request();

  /// Hands the request over as routerd does, more than one datagram's descriptors in parts.
  Job start(wire::ExecRequest request, const std::vector<PassedFd>& fds = {},
            wire::Confinement confinement = {});
  /// The same with `early` on the connection already, so that it comes before the program runs.
  Job start_with_signal(wire::ExecRequest request, const wire::Signal& early);
  /// start(), Started, and the answer after that.
  wire::NotStarted refusal_of(wire::ExecRequest request);
  /// Runs to the end with a pipe as 1 and 2.
  Output run(wire::ExecRequest request, wire::Confinement confinement = {});
  /// Runs the probe with these descriptors and a pipe as `report`; its lines by key.
  std::map<std::string, std::string> probe(wire::ExecRequest request = probe_request(),
                                           const std::vector<PassedFd>& fds = {},
                                           std::uint32_t report = 1);
  wire::JobList list_jobs();
  /// Asks until the init has reaped every job; throws if it does not in thousands of questions.
  void await_no_jobs();

  template <class Message>
  void tell_init(const Message& message) {
    auto sent =
        wire::send_datagram(context_->channel(), wire::type_of<Message>(), wire::encode(message));
    if (!sent) throw std::runtime_error(sent.error().message());
  }

 private:
  Job start_on(SocketPair connection, wire::ExecRequest request, const std::vector<PassedFd>& fds,
               wire::Confinement confinement = {});

  TempDir folder_;
  std::unique_ptr<contexts::RuntimeDir> runtime_;
  std::unique_ptr<contexts::Context> context_;
  std::uint64_t next_job_ = 16;
};

/// The value, or an exception with the error's text.
template <class T>
T value_of(base::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

}  // namespace support
