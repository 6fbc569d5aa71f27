#include <signal.h>

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/exec_stream.h"
#include "api/fields.h"
#include "api/handlers.h"
#include "api/once.h"

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
      if (self->exec_->has_ended() || (self->is_late_ && self->is_taken())) self->answer();
    });
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto alive = weak.lock()) alive->leave();
    });
    if (exec_->has_ended()) return answer();  // the same request has started it before
    if (!order_.yield_ms) return;
    yield_.expires_after(std::chrono::milliseconds(*order_.yield_ms));
    yield_.async_wait([self](boost::system::error_code error) {
      self->is_late_ = !error;
      if (!error && self->is_taken()) self->answer();
    });
  }

 private:
  /// It runs, or a shell has it in its queue: there is something to tell.
  bool is_taken() const { return exec_->facts().pid != 0 || exec_->facts().is_queued; }

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

namespace {

void tell(App& app, const std::shared_ptr<Exchange>& exchange, std::shared_ptr<Exec> exec,
          ExecOrder order) {
  const auto format = stream_format(exchange->request());
  if (!format) {
    std::make_shared<BufferedExec>(app, exchange, std::move(exec), std::move(order))->start();
    return;
  }
  stream_exec(EventStream::start(app.io, exchange, *format), exec,
              {.encoding = order.encoding,
               .is_waited_for = order.waits_for_reader,
               .kills = order.kill_on_disconnect});
}

void run(App& app, const std::shared_ptr<Exchange>& exchange, ExecOrder order) {
  order.asked_by = asked_by(app, exchange->request());
  auto exec = app.execs->start(order, exchange->request().param("context"));
  if (!exec) {
    app.idempotency.drop(order.once_name);
    return refuse(*exchange, problem_of(exec.error()));
  }
  app.idempotency.keep_exec(order.once_name, (*exec)->facts().id);
  tell(app, exchange, std::move(*exec), std::move(order));
}

/// The same request has started it before.
void tell_again(App& app, const std::shared_ptr<Exchange>& exchange, const std::string& id,
                ExecOrder order) {
  auto exec = app.execs->find(id);
  if (!exec) return refuse(*exchange, problem("exec-forgotten"));
  order.kill_on_disconnect = false;
  order.waits_for_reader = false;
  tell(app, exchange, std::move(exec), std::move(order));
}

/// In the shell `default` of a context that is persistent.
void run_in_default_shell(App& app, const std::shared_ptr<Exchange>& exchange, ExecOrder order) {
  app.daemon->ask("ctx.inspect", {{"context", exchange->request().param("context")}},
                  [&app, exchange, order = std::move(order)](const base::Result<json>& answer) {
                    if (!answer) {
                      app.idempotency.drop(order.once_name);
                      return refuse(*exchange, problem_of(answer.error()));
                    }
                    ExecOrder settled = order;
                    if (answer->at("context").value("persistent", true)) settled.shell = "default";
                    run(app, exchange, std::move(settled));
                  });
}

}  // namespace

void post_exec(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  auto order = read_exec_order(*body);
  if (!order) return refuse(*exchange, order.error());
  const auto once = begin_once(app, *exchange);
  if (!once) return;
  order->once_name = once->name;
  order->once_hash = once->hash;
  // Who may ask again may leave.
  if (!once->name.empty() && !body->contains("onDisconnect")) order->kill_on_disconnect = false;
  if (!once->exec.empty()) return tell_again(app, exchange, once->exec, std::move(*order));
  if (order->takes_default_shell) return run_in_default_shell(app, exchange, std::move(*order));
  run(app, exchange, std::move(*order));
}

}  // namespace api
