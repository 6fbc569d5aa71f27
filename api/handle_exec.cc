#include <signal.h>

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/exec_stream.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;

namespace {

/// One exec whose client waits for the whole answer.
class BufferedExec : public std::enable_shared_from_this<BufferedExec> {
 public:
  BufferedExec(App& app, std::shared_ptr<Exchange> exchange, std::shared_ptr<Exec> exec,
               ExecOrder order)
      : app_(app),
        exchange_(std::move(exchange)),
        exec_(std::move(exec)),
        order_(std::move(order)),
        yield_(app.io) {}

  void start() {
    const auto self = shared_from_this();
    subscription_ = exec_->subscribe([self] {
      const bool has_started = self->exec_->facts().pid != 0;
      if (self->exec_->has_ended() || (self->is_late_ && has_started)) self->answer();
    });
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->leave();
    });
    if (!order_.yield_ms) return;
    yield_.expires_after(std::chrono::milliseconds(*order_.yield_ms));
    yield_.async_wait([self](boost::system::error_code error) {
      // One that has not even started is not running.
      self->is_late_ = !error;
      if (!error && self->exec_->facts().pid != 0) self->answer();
    });
  }

 private:
  void leave() {
    if (order_.kill_on_disconnect) exec_->signal(SIGKILL, wire::KillScope::group);
    finish();
  }

  // Nothing holds this object afterwards.
  void finish() {
    const auto self = shared_from_this();
    yield_.cancel();
    exec_->unsubscribe(subscription_);
    exchange_.reset();
  }

  void answer() {
    const auto self = shared_from_this();
    const auto exchange = exchange_;
    finish();
    if (!exchange) return;
    const auto& refusal = exec_->facts().not_started;
    if (refusal && refusal->error == EBUSY) {
      app_.execs->forget(exec_->facts().id);
      return refuse(*exchange, problem("shell-busy"));
    }
    if (!refusal) return exchange->reply(result());
    // A context that does not exist is no failure of the program's.
    app_.daemon->ask("ctx.inspect", {{"context", exec_->facts().context}},
                     [self, exchange](const base::Result<json>& there) {
                       if (there || there.error().code != ENOENT) {
                         return exchange->reply(self->result());
                       }
                       self->app_.execs->forget(self->exec_->facts().id);
                       refuse(*exchange, problem_of(there.error()));
                     });
  }

  Response result() const {
    json told = to_json(exec_->facts(), now_ms());
    add_capture(told, "stdout", exec_->capture(Exec::out), order_.encoding);
    add_capture(told, "stderr", exec_->capture(Exec::err), order_.encoding);
    told["cursor"] =
        cursor_text(Cursor{exec_->output(Exec::out).end(), exec_->output(Exec::err).end()});
    return json_response(told);
  }

  App& app_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Exec> exec_;
  ExecOrder order_;
  boost::asio::steady_timer yield_;
  std::uint64_t subscription_ = 0;
  bool is_late_ = false;
};

}  // namespace

void post_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  auto order = read_exec_order(*body);
  if (!order) return refuse(*exchange, order.error());
  auto exec = app.execs->start(*order, exchange->request().param("context"));
  if (!exec) return refuse(*exchange, problem_of(exec.error()));
  const auto format = stream_format(exchange->request());
  if (!format) {
    std::make_shared<BufferedExec>(app, exchange, std::move(*exec), std::move(*order))->start();
    return;
  }
  stream_exec(EventStream::start(app.io, exchange, *format), *exec,
              {.encoding = order->encoding,
               .is_waited_for = order->waits_for_reader,
               .kills = order->kill_on_disconnect});
}

}  // namespace api
