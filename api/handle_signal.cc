// Signals for programs that run, to the program, its group, all it has started or all of its
// context.

#include <signal.h>

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/app.h"
#include "api/channels.h"
#include "api/fields.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

/// As long as the daemon waits for those that it signals.
constexpr milliseconds kPatience{500};
constexpr std::uint64_t kLongestWait = 60'000;

struct Order {
  int signal = SIGTERM;
  std::string scope = "group";
  /// Nothing: no second signal.
  std::optional<int> second_signal;
  milliseconds after{0};

  bool is_wide() const { return scope == "exec" || scope == "context"; }
};

int read_signal(Fields& fields, int otherwise) {
  const json* wanted = fields.find("signal");
  if (wanted == nullptr) return otherwise;
  const auto number = signal_number(*wanted);
  if (!number) fields.fail("signal", "expected a name such as SIGTERM, or 1 to 64");
  return number.value_or(otherwise);
}

Checked<Order> read_order(const json& body) {
  Order order;
  Fields fields(body);
  order.signal = read_signal(fields, SIGTERM);
  order.scope = fields.word("scope", {"leader", "group", "exec", "context"}).value_or("group");
  if (const json* escalate = fields.find("escalate"); escalate != nullptr) {
    if (!escalate->is_object()) {
      fields.fail("escalate", "expected {afterMs, signal}");
    } else {
      Fields part(*escalate, "/escalate");
      order.second_signal = read_signal(part, SIGKILL);
      order.after = milliseconds(part.number("afterMs", 0, kLongestWait).value_or(5000));
      fields.take_errors(part);
    }
  }
  if (auto wrong = fields.done()) return tl::unexpected<Problem>(std::move(*wrong));
  return order;
}

/// A signal to the program or its group, and another one if it does not end. Counts the program
/// only.
class Escalation : public std::enable_shared_from_this<Escalation> {
 public:
  Escalation(App& app, std::shared_ptr<Exchange> exchange, std::shared_ptr<Exec> exec, Order order)
      : exchange_(std::move(exchange)),
        exec_(std::move(exec)),
        order_(std::move(order)),
        timer_(app.io) {}

  void start(wire::KillScope scope) {
    scope_ = scope;
    subscription_ = exec_->subscribe([self = shared_from_this()] {
      if (self->exec_->has_ended()) self->timer_.cancel();
    });
    wait(order_.after);
  }

 private:
  void wait(milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code) { self->go_on(); });
  }

  void go_on() {
    if (!exec_->has_ended() && order_.second_signal) {
      exec_->signal(*order_.second_signal, scope_);
      order_.second_signal.reset();
      return wait(kPatience);
    }
    exec_->unsubscribe(subscription_);
    exchange_->reply(json_response({{"delivered", 1}, {"survivors", exec_->has_ended() ? 0 : 1}}));
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<Exec> exec_;
  Order order_;
  boost::asio::steady_timer timer_;
  wire::KillScope scope_ = wire::KillScope::group;
  std::uint64_t subscription_ = 0;
};

/// The daemon knows the processes.
void signal_widely(App& app, const std::shared_ptr<Exchange>& exchange, const std::string& context,
                   std::uint64_t job, const Order& order) {
  json fields = {
      {"context", context}, {"job", job}, {"scope", order.scope}, {"signal", order.signal}};
  if (order.second_signal) {
    fields["escalate"] = {{"afterMs", order.after.count()}, {"signal", *order.second_signal}};
  }
  app.daemon->ask_apart("kill", std::move(fields), [exchange](const base::Result<json>& answer) {
    if (!answer && answer.error().code == ESRCH) return refuse(*exchange, problem("exec-ended"));
    if (!answer) return refuse(*exchange, problem_of(answer.error()));
    exchange->reply(json_response({{"delivered", answer->value("delivered", 0)},
                                   {"survivors", answer->value("survivors", 0)}}));
  });
}

void signal_exec(App& app, const std::shared_ptr<Exchange>& exchange,
                 const std::shared_ptr<Exec>& exec, Order order) {
  // What a command of a shell has started its host knows, and its group is that.
  const bool is_in_shell = !exec->facts().shell.empty();
  if (order.is_wide() && !(is_in_shell && order.scope == "exec")) {
    return signal_widely(app, exchange, exec->facts().context, exec->facts().job, order);
  }
  const auto scope = order.scope == "leader" ? wire::KillScope::process : wire::KillScope::group;
  if (!exec->signal(order.signal, scope)) return refuse(*exchange, problem("exec-ended"));
  if (!order.second_signal) return exchange->reply({204, "", "", {}});
  std::make_shared<Escalation>(app, exchange, exec, std::move(order))->start(scope);
}

}  // namespace

void post_signal(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto exec = app.execs->find(exchange->request().param("exec"));
  if (!exec) return refuse(*exchange, problem("exec-not-found"));
  auto body = read_body(exchange->request());
  auto order = body ? read_order(*body) : Checked<Order>(tl::unexpected<Problem>(body.error()));
  if (!order) return refuse(*exchange, order.error());
  if (exec->has_ended() && order->scope != "context") {
    return refuse(*exchange, problem("exec-ended"));
  }
  signal_exec(app, exchange, exec, std::move(*order));
}

}  // namespace api
