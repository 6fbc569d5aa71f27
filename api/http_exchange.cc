// Exchanges and bodies as handlers know them, for a connection.

#include <spdlog/spdlog.h>

#include "api/connection.h"

namespace api {
namespace {

class HttpExchange : public Exchange {
 public:
  HttpExchange(std::shared_ptr<Connection> connection, Request request, std::string operation)
      : Exchange(std::move(request)),
        connection_(std::move(connection)),
        watched_(connection_),
        operation_(std::move(operation)) {}

  // A handler that lost its exchange: the client must not wait for ever.
  ~HttpExchange() override {
    if (!connection_) return;
    try {
      connection_->reply(to_response(problem("internal"), request().id), operation_);
    } catch (const std::exception& error) {
      spdlog::error("no answer to {}: {}", operation_, error.what());
    }
  }

  void reply(Response response) override {
    if (const auto connection = std::exchange(connection_, nullptr)) {
      connection->reply(std::move(response), operation_);
    }
  }

  std::shared_ptr<BodyStream> start(Response head) override {
    return std::exchange(connection_, nullptr)->start(head, operation_);
  }

  void upgrade(std::string subprotocol, std::vector<std::pair<std::string, std::string>> headers,
               const std::function<void(std::shared_ptr<MessageSocket>)>& then) override {
    headers.emplace_back("Sec-WebSocket-Protocol", std::move(subprotocol));
    std::exchange(connection_, nullptr)->upgrade(std::move(headers), operation_, then);
  }

  void on_gone(std::function<void()> action) override {
    if (const auto connection = watched_.lock()) connection->on_gone(std::move(action));
  }

  void read_part(std::function<void(Checked<std::string>)> got) override {
    if (connection_) connection_->read_part(std::move(got));
  }

 private:
  /// Until it is answered.
  std::shared_ptr<Connection> connection_;
  std::weak_ptr<Connection> watched_;
  std::string operation_;
};

class HttpBody : public BodyStream {
 public:
  explicit HttpBody(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  void write(std::string bytes, std::function<void()> done) override {
    connection_->write_chunk(std::move(bytes), std::move(done));
  }
  void end() override { connection_->end_body(); }
  void cut() override { connection_->cut_body(); }

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Connection> connection, Request request,
                                        std::string operation) {
  return std::make_shared<HttpExchange>(std::move(connection), std::move(request),
                                        std::move(operation));
}

std::shared_ptr<BodyStream> make_body(std::shared_ptr<Connection> connection) {
  return std::make_shared<HttpBody>(std::move(connection));
}

}  // namespace api
