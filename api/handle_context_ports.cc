// TCP ports that programs of a context listen on.

#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/app.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

constexpr std::uint64_t kUsualWait = 30'000;
constexpr std::uint64_t kLongestWait = 600'000;
constexpr milliseconds kFirstPause{10};
constexpr milliseconds kLongestPause{200};

/// All of `text` as a number up to `most`.
std::optional<std::uint64_t> number_in(const std::string& text, std::uint64_t most) {
  std::uint64_t number = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number > most) return std::nullopt;
  return number;
}

/// Asks the daemon until somebody listens, less and less often: it looks a listening socket up in
/// some µs, and at processes only when there is one.
class PortWait : public std::enable_shared_from_this<PortWait> {
 public:
  PortWait(App& app, std::shared_ptr<Exchange> exchange, std::uint64_t port, milliseconds limit)
      : app_(app),
        exchange_(std::move(exchange)),
        port_(port),
        until_(std::chrono::steady_clock::now() + limit),
        timer_(app.io) {}

  void start() {
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->is_gone_ = true;
    });
    ask();
  }

 private:
  void ask() {
    if (is_gone_) return;
    app_.daemon->ask("ctx.ports",
                     {{"context", exchange_->request().param("context")}, {"port", port_}},
                     [self = shared_from_this()](const base::Result<json>& answer) {
                       if (!answer) return refuse(*self->exchange_, problem_of(answer.error()));
                       self->look(answer->value("ports", json::array()));
                     });
  }

  void look(const json& ports) {
    const auto left =
        std::chrono::duration_cast<milliseconds>(until_ - std::chrono::steady_clock::now());
    if (!ports.empty() || left.count() <= 0) {
      json told = ports.empty() ? json{{"port", port_}} : ports.front();
      told["isListening"] = !ports.empty();
      return exchange_->reply(json_response(told));
    }
    timer_.expires_after(std::min(pause_, left));
    pause_ = std::min(pause_ * 5 / 4, kLongestPause);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error) self->ask();
    });
  }

  App& app_;
  std::shared_ptr<Exchange> exchange_;
  std::uint64_t port_;
  std::chrono::steady_clock::time_point until_;
  boost::asio::steady_timer timer_;
  milliseconds pause_ = kFirstPause;
  bool is_gone_ = false;
};

}  // namespace

void list_context_ports(App& app, const std::shared_ptr<Exchange>& exchange) {
  app.daemon->ask(
      "ctx.ports", {{"context", exchange->request().param("context")}},
      [exchange](const base::Result<json>& answer) {
        if (!answer) return refuse(*exchange, problem_of(answer.error()));
        exchange->reply(json_response({{"items", answer->value("ports", json::array())}}));
      });
}

void wait_for_port(App& app, const std::shared_ptr<Exchange>& exchange) {
  const auto& request = exchange->request();
  const auto port = number_in(request.param("port"), 65535);
  const auto& text = request.query_value("timeoutMs");
  const auto limit = text.empty() ? kUsualWait : number_in(text, kLongestWait);
  if (!port || *port == 0) return refuse(*exchange, problem("invalid-request", "no such port"));
  if (!limit) {
    return refuse(*exchange, problem("invalid-request", "timeoutMs: expected 0 to 600000"));
  }
  std::make_shared<PortWait>(app, exchange, *port, milliseconds(*limit))->start();
}

}  // namespace api
