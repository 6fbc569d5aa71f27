#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/exec_stream.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// The exec of the path; null if it was refused.
std::shared_ptr<Exec> find_or_refuse(App& app, Exchange& exchange) {
  auto exec = app.execs->find(exchange.request().param("exec"));
  if (!exec) refuse(exchange, problem("exec-not-found"));
  return exec;
}

}  // namespace

void list_execs(App& app, const std::shared_ptr<Exchange>& exchange) {
  json items = json::array();
  const auto now = now_ms();
  for (const auto& exec : app.execs->in_context(exchange->request().param("context"))) {
    items.push_back(to_json(exec->facts(), now));
  }
  exchange->reply(json_response({{"items", std::move(items)}}));
}

namespace {

/// Answers when the exec has ended, or the time is over.
void answer_at_end(App& app, const std::shared_ptr<Exchange>& exchange,
                   const std::shared_ptr<Exec>& exec, std::chrono::milliseconds limit) {
  auto timer = std::make_shared<boost::asio::steady_timer>(app.io, limit);
  const auto subscription = exec->subscribe([timer, exec] {
    if (exec->has_ended()) timer->cancel();
  });
  exchange->on_gone([timer] { timer->cancel(); });
  timer->async_wait([timer, exec, exchange, subscription](boost::system::error_code) {
    exec->unsubscribe(subscription);
    exchange->reply(json_response(to_json(exec->facts(), now_ms())));
  });
}

}  // namespace

void get_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = find_or_refuse(app, *exchange);
  if (!exec) return;
  const auto& text = exchange->request().query_value("waitMs");
  std::uint64_t wait = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), wait);
  constexpr std::uint64_t kLongestWait = 10 * 60 * 1000;
  if (!text.empty() && (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
                        wait > kLongestWait)) {
    return refuse(*exchange, problem("invalid-request", "waitMs: expected 0 to 600000"));
  }
  if (exec->has_ended() || wait == 0) {
    return exchange->reply(json_response(to_json(exec->facts(), now_ms())));
  }
  answer_at_end(app, exchange, exec, std::chrono::milliseconds(wait));
}

void delete_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = find_or_refuse(app, *exchange);
  if (!exec) return;
  if (!exec->has_ended()) {
    return refuse(*exchange, problem("invalid-request", "it still runs: end it by a signal first"));
  }
  app.execs->forget(exec->facts().id);
  exchange->reply({204, "", "", {}});
}

void get_output(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = find_or_refuse(app, *exchange);
  if (!exec) return;
  const auto& request = exchange->request();
  const auto& last = request.header("last-event-id");
  const auto& since = last.empty() ? request.query_value("since") : last;
  const auto cursor = since.empty() ? Cursor{} : parse_cursor(since);
  if (!cursor || (*cursor)[Exec::out] > exec->output(Exec::out).end() ||
      (*cursor)[Exec::err] > exec->output(Exec::err).end()) {
    return refuse(*exchange, problem("invalid-request", "since: expected a cursor of this exec"));
  }
  if (const auto format = stream_format(request)) {
    return stream_exec(EventStream::start(app.io, exchange, *format), exec, {.from = *cursor});
  }
  json told = to_json(exec->facts(), now_ms());
  add_capture(told, "stdout", exec->capture(Exec::out), Encoding::automatic);
  add_capture(told, "stderr", exec->capture(Exec::err), Encoding::automatic);
  told["cursor"] =
      cursor_text(Cursor{exec->output(Exec::out).end(), exec->output(Exec::err).end()});
  exchange->reply(json_response(told));
}

namespace {

/// Writes what the program takes, as fast as it takes it.
class InputWriter : public std::enable_shared_from_this<InputWriter> {
 public:
  InputWriter(std::shared_ptr<Exchange> exchange, std::shared_ptr<Exec> exec, bool closes)
      : exchange_(std::move(exchange)), exec_(std::move(exec)), closes_(closes) {}

  void start() {
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->is_gone_ = true;
    });
    write();
  }

 private:
  void write() {
    const std::string& body = exchange_->request().body;
    while (written_ < body.size() && !is_gone_) {
      const auto taken = exec_->write_input(std::string_view(body).substr(written_));
      if (!taken) return refuse(*exchange_, problem("stdin-closed"));
      written_ += *taken;
      if (*taken == 0) {
        return exec_->await_input([self = shared_from_this()] { self->write(); });
      }
    }
    if (closes_ && !is_gone_) exec_->close_input();
    exchange_->reply(json_response({{"written", written_}, {"stdinBytes", exec_->input_bytes()}}));
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Exec> exec_;
  bool closes_;
  bool is_gone_ = false;
  std::size_t written_ = 0;
};

}  // namespace

void post_stdin(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = find_or_refuse(app, *exchange);
  if (!exec) return;
  if (exec->has_ended()) return refuse(*exchange, problem("exec-ended"));
  if (exec->input() != Exec::Input::open) return refuse(*exchange, problem("stdin-closed"));
  const bool closes = exchange->request().query_value("close") == "true";
  std::make_shared<InputWriter>(exchange, exec, closes)->start();
}

void post_resize(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = find_or_refuse(app, *exchange);
  if (!exec) return;
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  const auto columns = fields.number("cols", 1, 4096);
  const auto rows = fields.number("rows", 1, 4096);
  if (!fields.has("cols")) fields.fail("cols", "expected a number");
  if (!fields.has("rows")) fields.fail("rows", "expected a number");
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  if (!exec->facts().has_terminal) return refuse(*exchange, problem("no-terminal"));
  const wire::Winsize size{static_cast<std::uint16_t>(*rows), static_cast<std::uint16_t>(*columns),
                           0, 0};
  if (!exec->resize(size)) return refuse(*exchange, problem("exec-ended"));
  exchange->reply({204, "", "", {}});
}

}  // namespace api
