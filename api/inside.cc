#include "api/inside.h"

#include "api/app.h"

namespace api {
namespace {

constexpr std::uint64_t kLongestMs = 10'000;
constexpr std::uint64_t kMostPrinted = 4u << 20;

Checked<Printed> printed_by(const Exec& exec) {
  const auto& facts = exec.facts();
  if (facts.not_started) {
    return tl::unexpected<Problem>(problem("not-supported", facts.not_started->message));
  }
  if (facts.is_lost) return tl::unexpected<Problem>(problem("context-not-found"));
  const auto& exited = *facts.exited;
  return Printed{exec.capture(Exec::out).bytes, exited.wait_status == 0 && !exited.timed_out};
}

}  // namespace

void run_inside(App& app, const std::string& context, std::vector<std::string> argv,
                const std::string& cwd, std::function<void(Checked<Printed>)> then) {
  ExecOrder order;
  order.argv = std::move(argv);
  order.cwd = cwd;
  order.timeout_ms = kLongestMs;
  order.grace_ms = 0;
  order.max_bytes = kMostPrinted;
  auto started = app.execs->start(order, context);
  if (!started) return then(tl::unexpected<Problem>(problem_of(started.error())));
  const auto& exec = *started;
  exec->subscribe([&app, exec, then = std::move(then)] {
    if (!exec->has_ended()) return;
    // Forgetting it ends this subscription, and with it what it holds.
    const auto finish = then;
    const auto held = exec;
    app.execs->forget(held->facts().id);
    finish(printed_by(*held));
  });
}

}  // namespace api
