#include "api/adoption.h"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "api/app.h"

namespace api {
namespace {

using nlohmann::json;

/// One question after the other, on a connection of its own. Lives until it is done.
class Adoption : public std::enable_shared_from_this<Adoption> {
 public:
  Adoption(App& app, std::vector<std::string> keys, std::function<void()> then)
      : app_(app), keys_(std::move(keys)), then_(std::move(then)) {}

  void start() {
    auto socket = app_.daemon->open();
    if (!socket) return finish();
    const auto self = shared_from_this();
    connection_ = std::make_unique<FrameConnection>(
        app_.io, std::move(*socket), [self](wire::Frame frame) { self->take(std::move(frame)); },
        [self] { self->finish(); });
    ask_next();
  }

 private:
  void ask_next() {
    if (next_ == keys_.size()) return finish();
    connection_->send(wire::Attach{keys_[next_++]});
  }

  void take(wire::Frame frame) {
    if (is_over_) return;
    auto left = frame.type == wire::MessageType::attached
                    ? wire::decode<wire::Attached>(frame.payload)
                    : base::failure("take up a kept job", ENOENT);
    if (left) {
      const std::string key = left->key;
      auto adopted = app_.execs->adopt(*left, std::move(frame.fds));
      const auto exec = app_.execs->find(key);
      if (exec && !exec->facts().not_started) {
        const auto& facts = exec->facts();
        app_.idempotency.adopt(facts.once_name, facts.once_hash, facts.id, facts.started_ms);
      }
      if (!adopted) {
        spdlog::error("job {} is given up: {}", key, adopted.error().message());
        app_.daemon->jobs().send(wire::Release{key});
      }
    }
    ask_next();
  }

  // Not now: the connection is in the middle of its callback, which holds this object.
  void finish() {
    if (std::exchange(is_over_, true)) return;
    boost::asio::post(app_.io, [self = shared_from_this()] {
      self->connection_.reset();
      self->app_.terminals->adopt();
      self->then_();
    });
  }

  App& app_;
  std::vector<std::string> keys_;
  std::function<void()> then_;
  std::unique_ptr<FrameConnection> connection_;
  std::size_t next_ = 0;
  bool is_over_ = false;
};

}  // namespace

void adopt_kept_jobs(App& app, std::function<void()> then) {
  app.daemon->ask("jobs.kept", json::object(),
                  [&app, then = std::move(then)](const base::Result<json>& answer) {
                    auto keys = answer ? answer->value("keys", std::vector<std::string>{})
                                       : std::vector<std::string>{};
                    if (!keys.empty()) spdlog::info("taking up {} execs", keys.size());
                    std::make_shared<Adoption>(app, std::move(keys), then)->start();
                  });
}

}  // namespace api
