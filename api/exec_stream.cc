#include "api/exec_stream.h"

#include <signal.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "api/text.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::size_t kLargestEvent = 64u << 10;  // bytes of output in one
constexpr std::size_t kEventsPerWrite = 4;
constexpr const char* kStreamNames[] = {"stdout", "stderr"};

bool read_number(std::string_view& text, char prefix, std::uint64_t& number) {
  if (!text.starts_with(prefix)) return false;
  const auto parsed = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr == text.data() + 1) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

}  // namespace

std::string cursor_text(const Cursor& cursor) {
  return "o" + std::to_string(cursor[Exec::out]) + ".e" + std::to_string(cursor[Exec::err]);
}

std::optional<Cursor> parse_cursor(std::string_view text) {
  Cursor cursor{};
  if (!read_number(text, 'o', cursor[Exec::out]) || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  if (!read_number(text, 'e', cursor[Exec::err]) || !text.empty()) return std::nullopt;
  return cursor;
}

std::string output_fields(std::string_view bytes, Encoding encoding) {
  const bool is_text = encoding != Encoding::base64 && is_utf8(bytes);
  std::string fields;
  fields.reserve(bytes.size() + bytes.size() / 3 + 16);
  if (is_text) {
    fields += "{\"text\":";
    append_json_string(fields, bytes);
    fields += "}";
  } else if (encoding == Encoding::utf8) {
    fields = to_text(json{{"text", bytes}});  // with U+FFFD for what is not UTF-8
  } else {
    fields += "{\"base64\":\"";
    fields += to_base64(bytes);
    fields += "\"}";
  }
  return fields;
}

namespace {

/// One client that follows one exec. Held by its stream.
class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(const std::shared_ptr<EventStream>& stream, std::shared_ptr<Exec> exec,
           const ExecStreamOptions& options)
      : stream_(stream), exec_(std::move(exec)), options_(options), cursor_(options.from) {}
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  ~Follower() {
    exec_->unsubscribe(subscription_);
    exec_->remove_reader(subscription_);
  }

  void start() {
    const auto stream = stream_.lock();
    stream->keep(shared_from_this());
    const auto pump = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->pump();
    };
    subscription_ = exec_->subscribe(pump);
    stream->on_ready(pump);
    stream->on_gone([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->options_.kills) self->exec_->signal(SIGKILL, wire::KillScope::group);
    });
    if (options_.is_waited_for) exec_->set_reader(subscription_, cursor_);
    pump();
  }

 private:
  void pump() {
    const auto self = shared_from_this();
    const auto stream = stream_.lock();
    if (!stream || !stream->is_ready()) return;
    std::string events;
    add_start(events, *stream);
    for (std::size_t i = 0; i < kEventsPerWrite; ++i) {
      for (const auto which : {Exec::out, Exec::err}) add_output(events, *stream, which);
    }
    if (options_.is_waited_for) exec_->set_reader(subscription_, cursor_);
    if (!events.empty()) return stream->write(std::move(events));
    if (exec_->has_ended()) {
      const auto result = to_json(exec_->facts(), now_ms());
      stream->end_with_exit(result, cursor_text(cursor_));
    }
  }

  void add_start(std::string& events, const EventStream& stream) {
    const auto& facts = exec_->facts();
    if (facts.is_queued && !std::exchange(has_told_queue_, true)) {
      append_event(events, stream.format(), "notice",
                   to_text(json{{"reason", "queued"}, {"id", facts.id}}), cursor_text(cursor_));
    }
    if (has_started_ || (facts.pid == 0 && !exec_->has_ended())) return;
    has_started_ = true;
    append_event(events, stream.format(), "start",
                 to_text(json{{"id", facts.id}, {"pid", facts.pid}}), cursor_text(cursor_));
  }

  void add_output(std::string& events, const EventStream& stream, Exec::Stream which) {
    if (!has_started_) return;
    const OutputLog& log = exec_->output(which);
    std::uint64_t& at = cursor_[which];
    if (at >= log.hole_begin() && at < log.hole_end()) {
      const json skipped = {
          {"reason", "skipped"}, {"stream", kStreamNames[which]}, {"bytes", log.hole_end() - at}};
      at = log.hole_end();
      append_event(events, stream.format(), "notice", to_text(skipped), cursor_text(cursor_));
    }
    std::string bytes = log.read(at, kLargestEvent);
    const bool is_end = exec_->has_ended() && at + bytes.size() >= log.end();
    if (!is_end && options_.encoding != Encoding::base64) {
      bytes.resize(bytes.size() - incomplete_tail(bytes));
    }
    if (bytes.empty()) return;
    at += bytes.size();
    append_event(events, stream.format(), kStreamNames[which],
                 output_fields(bytes, options_.encoding), cursor_text(cursor_));
  }

  std::weak_ptr<EventStream> stream_;
  std::shared_ptr<Exec> exec_;
  ExecStreamOptions options_;
  Cursor cursor_;
  std::uint64_t subscription_ = 0;
  bool has_told_queue_ = false;
  bool has_started_ = false;
};

}  // namespace

void stream_exec(const std::shared_ptr<EventStream>& stream, const std::shared_ptr<Exec>& exec,
                 const ExecStreamOptions& options) {
  std::make_shared<Follower>(stream, exec, options)->start();
}

}  // namespace api
