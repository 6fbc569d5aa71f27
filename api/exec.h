#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/daemon_client.h"
#include "api/exec_order.h"
#include "api/exec_result.h"
#include "api/output_log.h"

namespace api {

/// What execs need of their process.
struct ExecHost {
  boost::asio::io_context& io;
  DaemonClient& daemon;
  /// Limits, umask and so on that programs start with.
  wire::ProcessState state;
  /// What runs a command that no persistent shell runs: "bash" or "sh".
  std::string new_shell;
  /// Called once for each exec that ends.
  std::function<void(const ExecFacts&)> on_ended;
};

/// One program that runs, or has run, in a context, with its output. The daemon keeps copies of its
/// descriptors, so that it outlives this process.
class Exec : public std::enable_shared_from_this<Exec> {
 public:
  enum Stream { out = 0, err = 1 };
  static constexpr std::size_t kStreams = 2;

  /// Orders it to be run; whether it does is told later, by has_ended(). Errors: no descriptors.
  static base::Result<std::shared_ptr<Exec>> start(ExecHost& host, const ExecOrder& order,
                                                   const std::string& context);
  /// Takes up what an earlier process has left with the daemon.
  static base::Result<std::shared_ptr<Exec>> adopt(ExecHost& host, const wire::Attached& left,
                                                   std::vector<base::UniqueFd> fds);

  const ExecFacts& facts() const { return facts_; }
  bool has_ended() const { return facts_.has_ended(); }
  /// Nobody has its output open any more; until then more may come, also after its end.
  bool is_silent() const { return !sources_[out] && !sources_[err]; }
  const OutputLog& output(Stream stream) const { return logs_[stream]; }
  /// What is kept of a stream.
  Capture capture(Stream stream) const;

  /// False if it has ended.
  bool signal(int number, wire::KillScope scope);
  bool resize(wire::Winsize size);  ///< one that has not started yet will have it
  /// Of its terminal, if it has one.
  std::optional<wire::Winsize> size();

  /// Its input, if it was asked for.
  enum class Input { none, open, closed };
  Input input() const { return input_state_; }
  std::uint64_t input_bytes() const { return input_bytes_; }
  /// Writes as much as it takes for now: fewer bytes than given, or 0, if it does not read. EPIPE:
  /// nobody will.
  base::Result<std::size_t> write_input(std::string_view bytes);
  /// Calls `action` when it may take more.
  void await_input(std::function<void()> action);
  void close_input();

  /// `action` is called whenever something has changed: output, its end.
  std::uint64_t subscribe(std::function<void()> action);
  void unsubscribe(std::uint64_t number) { subscribers_.erase(number); }

  /// A subscriber that the program waits for: it has taken all before these offsets, and no more
  /// than kWindow bytes beyond are read from the program. Nobody by default.
  void set_reader(std::uint64_t subscription, const std::array<std::uint64_t, kStreams>& offsets);
  void remove_reader(std::uint64_t subscription);
  static constexpr std::uint64_t kWindow = 1u << 20;

  /// Lets the daemon forget it. A program that still runs is killed.
  void release();

 private:
  Exec(ExecHost& host, ExecFacts facts, std::array<OutputLog, kStreams> logs);
  void begin(base::UniqueFd job);
  void await_job();
  void take_job();
  bool obey(wire::Frame frame);
  void end();
  void keep_note(std::vector<base::UniqueFd> fds = {});
  void set_source(Stream stream, base::UniqueFd fd);
  void set_input(base::UniqueFd fd);
  void await_output(Stream stream);
  void take_output(Stream stream);
  void drain();
  void wait_for_readers();
  std::uint64_t held_from(Stream stream) const;
  std::uint64_t room(Stream stream) const;
  void notify();

  using Descriptor = boost::asio::posix::stream_descriptor;
  ExecHost& host_;
  ExecFacts facts_;
  std::optional<Descriptor> job_;
  std::array<OutputLog, kStreams> logs_;
  /// Pipes, or as `out` the terminal.
  std::array<std::optional<Descriptor>, kStreams> sources_;
  std::array<bool, kStreams> is_paused_{};
  std::array<bool, kStreams> has_large_pipe_{};
  std::optional<Descriptor> input_;
  Input input_state_ = Input::none;
  std::optional<wire::Winsize> wanted_size_;
  std::uint64_t input_bytes_ = 0;
  /// By subscription.
  std::map<std::uint64_t, std::array<std::uint64_t, kStreams>> readers_;
  std::map<std::uint64_t, std::function<void()>> subscribers_;
  std::uint64_t next_subscriber_ = 1;
  boost::asio::steady_timer retry_;
  int retries_ = 0;
};

/// 128 random bits as `prefix` and 32 digits.
std::string make_id(const std::string& prefix);
std::int64_t now_ms();

}  // namespace api
