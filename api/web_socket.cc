#include "api/web_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "api/channels.h"

namespace api {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kPingPause{20};
/// So many pauses without a sign of the client are its end.
constexpr int kMostSilentPauses = 3;
constexpr std::chrono::seconds kCloseTime{5};
/// The kernel's own deadline for a client that acknowledges nothing, ms.
constexpr unsigned kDeadPeerMs = 60'000;
constexpr std::size_t kLongestReason = 123;  // RFC 6455, 5.5

class WebSocket : public MessageSocket, public std::enable_shared_from_this<WebSocket> {
 public:
  explicit WebSocket(WebSocketOrder order)
      : write_time_(order.write_time),
        keeper_(std::move(order.keeper)),
        ws_(std::move(order.stream)),
        timer_(ws_.get_executor()) {
    beast::get_lowest_layer(ws_).expires_never();
    // Deadlines are our own; Beast's would also be that of its closing handshake.
    ws_.set_option(websocket::stream_base::timeout{websocket::stream_base::none(),
                                                   websocket::stream_base::none(), false});
    ws_.read_message_max(kLongestMessage);
    ws_.auto_fragment(false);
    ws_.binary(true);
    ws_.set_option(websocket::stream_base::decorator(
        [headers = std::move(order.headers)](websocket::response_type& response) {
          for (const auto& [name, value] : headers) response.set(name, value);
        }));
  }

  void accept(beast::http::request<beast::http::string_body> request,
              const std::function<void(std::shared_ptr<MessageSocket>)>& then) {
    auto kept = std::make_shared<decltype(request)>(std::move(request));
    ws_.async_accept(*kept, [self = shared_from_this(), kept, then](error_code error) {
      if (error) return;
      self->begin();
      then(self);
    });
  }

  void read(std::function<void(std::optional<std::string>)> got) override {
    is_reading_ = true;
    ws_.async_read(buffer_, [self = shared_from_this(), got](error_code error, std::size_t) {
      self->take(error, got);
    });
  }

  void write(std::string message, std::function<void()> done) override {
    auto kept = std::make_shared<std::string>(std::move(message));
    write_began_ = std::chrono::steady_clock::now();
    ws_.async_write(boost::asio::buffer(*kept),
                    [self = shared_from_this(), kept, done](error_code error, std::size_t) {
                      self->write_began_.reset();
                      if (error) return self->drop();
                      if (done) done();
                    });
  }

  void on_gone(std::function<void()> action) override { on_gone_ = std::move(action); }

  void close(std::uint16_t code, const std::string& reason) override {
    on_gone_ = nullptr;
    if (std::exchange(is_closing_, true)) return;
    // What was written may still be on its way to a slow client: it has to get it all.
    timer_.expires_after(code == websocket::close_code::normal ? write_time_ : kCloseTime);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (self && !error) self->drop();
    });
    websocket::close_reason told(code);
    told.reason = beast::string_view(reason).substr(0, kLongestReason);
    ws_.async_close(told, [self = shared_from_this()](error_code) { self->drop(); });
  }

 private:
  void begin() {
    const int socket = beast::get_lowest_layer(ws_).socket().native_handle();
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kDeadPeerMs, sizeof kDeadPeerMs);
    // A reset is noticed at once, also while nothing is read.
    beast::get_lowest_layer(ws_).socket().async_wait(boost::asio::socket_base::wait_error,
                                                     [weak = weak_from_this()](error_code error) {
                                                       const auto self = weak.lock();
                                                       if (self && !error) self->drop();
                                                     });
    ws_.control_callback([this](websocket::frame_type, beast::string_view) { silence_ = 0; });
    arm();
  }

  void take(error_code error, const std::function<void(std::optional<std::string>)>& got) {
    is_reading_ = false;
    silence_ = 0;
    if (!error && !ws_.got_text()) {
      std::string message = beast::buffers_to_string(buffer_.data());
      buffer_.consume(buffer_.size());
      return got(std::move(message));
    }
    if (!error) close(websocket::close_code::unknown_data, "messages must be binary");
    if (!is_closing_) drop();
    got(std::nullopt);
  }

  // Pings show proxies that the connection is used, and us whether anybody is there.
  void arm() {
    timer_.expires_after(kPingPause);
    timer_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (self && !error && !self->is_closing_) self->look();
    });
  }

  void look() {
    // While nothing is read no pong is either: then TCP has to notice.
    if (is_reading_ && ++silence_ > kMostSilentPauses) return drop();
    const auto now = std::chrono::steady_clock::now();
    if (write_began_ && now - *write_began_ > write_time_) return drop();
    if (!std::exchange(is_pinging_, true)) {
      ws_.async_ping({}, [self = shared_from_this()](error_code error) {
        self->is_pinging_ = false;
        if (error) self->drop();
      });
    }
    arm();
  }

  // All that is under way ends with an error.
  void drop() {
    is_closing_ = true;
    timer_.cancel();
    beast::get_lowest_layer(ws_).close();
    if (auto action = std::exchange(on_gone_, nullptr)) {
      boost::asio::post(ws_.get_executor(), std::move(action));
    }
  }

  std::chrono::seconds write_time_;
  std::shared_ptr<void> keeper_;
  websocket::stream<beast::tcp_stream> ws_;
  beast::flat_buffer buffer_;
  /// Until close() the next look, then the end of waiting for the client's answer.
  boost::asio::steady_timer timer_;
  std::optional<std::chrono::steady_clock::time_point> write_began_;
  std::function<void()> on_gone_;
  int silence_ = 0;
  bool is_reading_ = false;
  bool is_pinging_ = false;
  bool is_closing_ = false;
};

}  // namespace

void open_web_socket(WebSocketOrder order,
                     const std::function<void(std::shared_ptr<MessageSocket>)>& then) {
  auto request = std::move(order.request);
  std::make_shared<WebSocket>(std::move(order))->accept(std::move(request), then);
}

}  // namespace api
