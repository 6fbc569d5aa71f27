#include "api/attachment.h"

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

namespace api {

using nlohmann::json;

namespace {

/// With the heads of message and frame no more than Asio writes at once, 64 KiB.
constexpr std::size_t kLargestOutput = (64u << 10) - 64;
/// Typing, pasting and files through a terminal; a message also costs its handling.
constexpr double kInputPerSecond = 1u << 20;
constexpr double kInputBurst = 4u << 20;
constexpr double kMessageCost = 256;

constexpr std::uint16_t kNormalEnd = 1000;  // RFC 6455, 7.4.1
constexpr std::uint16_t kProtocolError = 1002;
constexpr std::uint16_t kNotAllowed = 1008;

constexpr Channel kChannels[] = {Channel::out, Channel::err};
constexpr const char* kStreamNames[] = {"stdout", "stderr"};

}  // namespace

void Attachment::start(boost::asio::io_context& io, std::shared_ptr<MessageSocket> socket,
                       std::shared_ptr<Audience> audience, const AttachOptions& options) {
  std::shared_ptr<Attachment> made(
      new Attachment(io, std::move(socket), std::move(audience), options));
  made->self_ = made;
  made->watch();
  made->socket_->on_gone([weak = made->weak_from_this()] {
    if (const auto self = weak.lock()) self->finish();
  });
  made->audience_->join(made);
  made->read();
  made->pump();
}

Attachment::Attachment(boost::asio::io_context& io, std::shared_ptr<MessageSocket> socket,
                       std::shared_ptr<Audience> audience, const AttachOptions& options)
    : io_(io),
      socket_(std::move(socket)),
      audience_(std::move(audience)),
      exec_(audience_->exec()),
      options_(options),
      cursor_(options.from),
      bucket_(kInputPerSecond, kInputBurst),
      pause_(io) {}

void Attachment::watch() {
  subscription_ = exec_->subscribe([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->pump();
  });
  if (options_.is_waited_for) exec_->set_reader(subscription_, cursor_);
}

void Attachment::unwatch() {
  exec_->remove_reader(subscription_);
  exec_->unsubscribe(subscription_);
}

void Attachment::follow(std::shared_ptr<Exec> exec) {
  if (is_over_) return;
  unwatch();
  exec_ = std::move(exec);
  cursor_ = {};
  queue_.clear();
  ends_input_ = is_waiting_for_program_ = false;
  has_told_start_ = false;
  watch();
  boost::asio::post(io_, [self = shared_from_this()] {
    self->flush_input();
    self->pump();
  });
}

void Attachment::tell_state() {
  has_told_state_ = false;
  boost::asio::post(io_, [self = shared_from_this()] { self->pump(); });
}

void Attachment::end(std::uint16_t code, const std::string& reason) {
  if (is_over_) return;
  socket_->close(code, reason);
  finish();
}

void Attachment::finish() {
  if (std::exchange(is_over_, true)) return;
  pause_.cancel();
  unwatch();
  audience_->leave(this);
  // Whoever calls may use this object still.
  boost::asio::post(io_, [self = std::move(self_)] {});
}

// ---- to the client ----

void Attachment::pump() {
  if (is_over_) return;
  skip_unwanted();
  if (exec_->has_ended() && is_waiting_for_program_) {
    is_waiting_for_program_ = false;
    flush_input();
  }
  if (is_writing_) return;
  const bool was_started = has_told_start_;
  auto message = next_message();
  if (has_told_start_ && !was_started) flush_input();
  if (options_.is_waited_for) exec_->set_reader(subscription_, cursor_);
  if (!message) return;
  is_writing_ = true;
  socket_->write(std::move(*message), [self = shared_from_this()] {
    self->is_writing_ = false;
    self->has_told_end_ ? self->end(kNormalEnd, "it has ended") : self->pump();
  });
}

void Attachment::skip_unwanted() {
  for (const auto stream : {Exec::out, Exec::err}) {
    if (!options_.wants[stream]) cursor_[stream] = exec_->output(stream).end();
  }
}

std::optional<std::string> Attachment::next_message() {
  if (auto status = next_status()) return status;
  for (const auto stream : {Exec::out, Exec::err}) {
    if (auto output = next_output(stream)) return output;
  }
  return exec_->has_ended() ? last_message() : std::nullopt;
}

std::optional<std::string> Attachment::next_status() {
  const auto& facts = exec_->facts();
  const bool is_ours = options_.framing == Framing::airlock;
  if (!has_told_start_ && (facts.pid != 0 || facts.has_ended())) {
    has_told_start_ = true;
    // As Kubernetes does: an empty message tells that it is connected.
    if (!is_ours) return output_message(options_.framing, Channel::out, 0, {});
    return status_message({{"type", "start"},
                           {"id", facts.id},
                           {"pid", facts.pid},
                           {"tty", facts.has_terminal},
                           {"role", options_.is_writer ? "writer" : "viewer"}});
  }
  if (!is_ours || !has_told_start_ || has_told_state_) return std::nullopt;
  has_told_state_ = true;
  json state = audience_->state();
  state["type"] = "state";
  return status_message(state);
}

std::optional<std::string> Attachment::next_output(Exec::Stream stream) {
  if (!has_told_start_) return std::nullopt;
  const OutputLog& log = exec_->output(stream);
  std::uint64_t& at = cursor_[stream];
  if (at >= log.hole_begin() && at < log.hole_end()) {
    const json skipped = {{"type", "notice"},
                          {"reason", "skipped"},
                          {"stream", kStreamNames[stream]},
                          {"bytes", log.hole_end() - at}};
    at = log.hole_end();
    if (options_.framing == Framing::airlock) return status_message(skipped);
  }
  const std::string bytes = log.read(at, kLargestOutput);
  if (bytes.empty()) return std::nullopt;
  const auto offset = at;
  at += bytes.size();
  return output_message(options_.framing, kChannels[stream], offset, bytes);
}

std::optional<std::string> Attachment::last_message() {
  if (std::exchange(has_told_end_, true)) return std::nullopt;
  const auto& facts = exec_->facts();
  if (options_.framing == Framing::kubernetes) return status_message(kubernetes_status(facts));
  json result = to_json(facts, now_ms());
  result["type"] = "exit";
  result["cursor"] = cursor_text(cursor_);
  return status_message(result);
}

// ---- from the client ----

void Attachment::read() {
  socket_->read([self = shared_from_this()](const std::optional<std::string>& message) {
    if (self->is_over_) return;
    message ? self->take(*message) : self->finish();
  });
}

void Attachment::take(const std::string& bytes) {
  const auto message = read_message(options_.framing, bytes);
  if (!message) return end(kProtocolError, message.error().operation);
  const bool is_asking = message->kind != ClientMessage::Kind::nothing;
  if (is_asking && !options_.is_writer) return end(kNotAllowed, "a viewer only looks");
  if (is_asking) obey(*message);
  go_on_reading(bytes.size());
}

// What comes too late for the program is nobody's mistake.
void Attachment::obey(const ClientMessage& message) {
  using Kind = ClientMessage::Kind;
  if (message.kind == Kind::resize) exec_->resize(message.size);
  if (message.kind == Kind::signal) exec_->signal(message.signal, message.scope);
  if (ends_input_) return;
  if (message.kind == Kind::input) queue_ += message.bytes;
  if (message.kind == Kind::end_of_input) ends_input_ = true;
  flush_input();
}

void Attachment::flush_input() {
  // A terminal has its input when its program has started.
  if (is_waiting_for_program_ || !has_told_start_) return;
  std::size_t written = 0;
  while (written < queue_.size()) {
    const auto taken = exec_->write_input(std::string_view(queue_).substr(written));
    if (!taken) written = queue_.size();  // nobody will read it
    if (taken) written += *taken;
    if (taken && *taken == 0) {
      is_waiting_for_program_ = true;
      exec_->await_input([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        self->is_waiting_for_program_ = false;
        self->flush_input();
      });
      break;
    }
  }
  queue_.erase(0, written);
  if (queue_.empty() && ends_input_) exec_->close_input();
  if (queue_.size() <= kMostQueued && std::exchange(is_paused_, false)) go_on_reading(0);
}

void Attachment::go_on_reading(std::size_t size) {
  if (is_over_) return;
  is_paused_ = queue_.size() > kMostQueued;
  if (is_paused_) return;  // flush_input() goes on
  const auto delay =
      bucket_.take(static_cast<double>(size) + kMessageCost, TokenBucket::Clock::now());
  if (!exec_->facts().has_terminal || delay.count() == 0) return read();
  pause_.expires_after(delay);
  pause_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (!error) self->read();
  });
}

}  // namespace api
