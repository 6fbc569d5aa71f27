#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "api/audience.h"
#include "api/channels.h"
#include "api/exec_stream.h"
#include "api/http.h"
#include "api/token_bucket.h"

namespace api {

/// Close codes of our own (docs/API.md).
constexpr std::uint16_t kTakenOver = 4001;

struct AttachOptions {
  Framing framing = Framing::airlock;
  /// May write, resize and signal; others look.
  bool is_writer = true;
  /// The program waits for this client, instead of this client missing some.
  bool is_waited_for = false;
  Cursor from{};
  std::array<bool, Exec::kStreams> wants{true, true};
};

/// One WebSocket client of an exec. The exec neither waits for it (unless asked to) nor ends with
/// it. Lives until the client has gone or everything has been told.
class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  static void start(boost::asio::io_context& io, std::shared_ptr<MessageSocket> socket,
                    std::shared_ptr<Audience> audience, const AttachOptions& options);

  const AttachOptions& options() const { return options_; }
  /// Another exec of the terminal, from its beginning.
  void follow(std::shared_ptr<Exec> exec);
  /// The audience's state has changed.
  void tell_state();
  void end(std::uint16_t code, const std::string& reason);

  /// Input that waits for the program; beyond that no more is read.
  static constexpr std::size_t kMostQueued = 128u << 10;

 private:
  Attachment(boost::asio::io_context& io, std::shared_ptr<MessageSocket> socket,
             std::shared_ptr<Audience> audience, const AttachOptions& options);
  void watch();
  void unwatch();
  void finish();

  // What goes to the client.
  void pump();
  std::optional<std::string> next_message();
  std::optional<std::string> next_status();
  std::optional<std::string> next_output(Exec::Stream stream);
  std::optional<std::string> last_message();
  void skip_unwanted();

  // What comes from it.
  void read();
  void take(const std::string& bytes);
  void obey(const ClientMessage& message);
  void flush_input();
  void go_on_reading(std::size_t size);

  boost::asio::io_context& io_;
  /// Until finish().
  std::shared_ptr<Attachment> self_;
  std::shared_ptr<MessageSocket> socket_;
  std::shared_ptr<Audience> audience_;
  std::shared_ptr<Exec> exec_;
  AttachOptions options_;
  Cursor cursor_;
  std::uint64_t subscription_ = 0;
  bool has_told_start_ = false;
  bool has_told_state_ = false;
  bool has_told_end_ = false;
  bool is_writing_ = false;
  bool is_over_ = false;

  std::string queue_;
  bool ends_input_ = false;
  bool is_waiting_for_program_ = false;
  bool is_paused_ = false;
  TokenBucket bucket_;
  boost::asio::steady_timer pause_;
};

}  // namespace api
