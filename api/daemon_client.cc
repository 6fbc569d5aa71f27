#include "api/daemon_client.h"

#include <boost/asio/post.hpp>

#include "api/http.h"
#include "wire/requester.h"

namespace api {

using nlohmann::json;

namespace {

constexpr std::size_t kMostQuestions = 1000;
constexpr const char* kGreeting = R"({"verb":"info"})";

json parse(const std::string& text) { return json::parse(text, nullptr, false); }

base::Result<json> read_answer(const wire::Frame& frame) {
  auto reply = wire::decode<wire::ControlReply>(frame.payload);
  if (!reply) return tl::unexpected<base::Error>(reply.error());
  json answer = parse(reply->json);
  if (!answer.is_object()) return base::failure("read the daemon's answer", EBADMSG);
  const auto error = answer.find("error");
  if (error == answer.end()) return answer;
  return base::failure(error->value("message", "the daemon refused"), error->value("errno", 0));
}

}  // namespace

base::Result<std::unique_ptr<DaemonClient>> DaemonClient::connect(boost::asio::io_context& io,
                                                                  std::string socket,
                                                                  std::function<void()> on_lost) {
  std::unique_ptr<DaemonClient> client(new DaemonClient(io, std::move(socket)));
  auto verbs = client->open();
  if (!verbs) return tl::unexpected<base::Error>(verbs.error());
  auto jobs = client->open();
  if (!jobs) return tl::unexpected<base::Error>(jobs.error());
  client->verbs_ = std::make_unique<FrameConnection>(
      io, std::move(*verbs), [raw = client.get()](const wire::Frame& frame) { raw->take(frame); },
      on_lost);
  client->jobs_ = std::make_unique<FrameConnection>(
      io, std::move(*jobs), [](const wire::Frame&) {}, std::move(on_lost));
  // The daemon closes connections that say nothing (docs/PROTOCOL.md, 5), and it may be long until
  // there is an exec.
  client->jobs_->send(wire::Control{kGreeting});
  return client;
}

base::Result<base::UniqueFd> DaemonClient::open() const { return wire::connect_to(socket_); }

void DaemonClient::ask(const std::string& verb, json fields, Answer answer) {
  if (questions_.size() >= kMostQuestions) {
    return answer(base::failure("ask the daemon", EAGAIN, "too many questions wait"));
  }
  fields["verb"] = verb;
  questions_.push_back({to_text(fields), std::move(answer)});
  if (!is_asking_) ask_next();
}

void DaemonClient::ask_apart(const std::string& verb, json fields, Answer answer) {
  auto socket = open();
  if (!socket) return answer(tl::unexpected<base::Error>(socket.error()));
  struct Question {
    std::unique_ptr<FrameConnection> connection;
    Answer answer;
  };
  auto asked = std::make_shared<Question>(Question{nullptr, std::move(answer)});
  const auto finish = [this, asked](base::Result<json> told) {
    const auto then = std::exchange(asked->answer, nullptr);
    if (!then) return;
    // Not now: the connection is in the middle of its callback.
    boost::asio::post(io_, [asked] { asked->connection.reset(); });
    then(std::move(told));
  };
  asked->connection = std::make_unique<FrameConnection>(
      io_, std::move(*socket), [finish](const wire::Frame& frame) { finish(read_answer(frame)); },
      [finish] { finish(base::failure("ask the daemon", ECONNRESET)); });
  fields["verb"] = verb;
  asked->connection->send(wire::Control{to_text(fields)});
}

void DaemonClient::announce(FrameConnection& connection, const AskedBy& fields,
                            const std::string& exec) {
  if (fields.empty()) return;
  json told = fields;
  told["verb"] = "api.exec";
  if (!exec.empty()) told["exec"] = exec;
  connection.send(wire::Control{to_text(told)});
}

void DaemonClient::ask_next() {
  if (questions_.empty()) return;
  is_asking_ = true;
  verbs_->send(wire::Control{questions_.front().text});
}

void DaemonClient::take(const wire::Frame& frame) {
  if (!is_asking_) return;
  is_asking_ = false;
  const Answer answer = std::move(questions_.front().answer);
  questions_.pop_front();
  auto read = read_answer(frame);
  ask_next();
  answer(std::move(read));
}

base::Result<std::unique_ptr<FrameConnection>> DaemonClient::follow(
    const std::string& verb, json fields, OnEvent on_event, std::function<void()> on_closed) {
  auto socket = open();
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  auto connection = std::make_unique<FrameConnection>(
      io_, std::move(*socket),
      [on_event = std::move(on_event)](const wire::Frame& frame) {
        if (frame.type == wire::MessageType::event) {
          if (auto event = wire::decode<wire::Event>(frame.payload)) on_event(parse(event->json));
        } else if (auto answer = read_answer(frame)) {
          on_event(*answer);
        }
      },
      std::move(on_closed));
  fields["verb"] = verb;
  connection->send(wire::Control{to_text(fields)});
  return connection;
}

base::Result<std::unique_ptr<FrameConnection>> DaemonClient::take_connections(
    OnConnection on_connection, std::function<void()> on_closed) {
  auto socket = open();
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  auto connection = std::make_unique<FrameConnection>(
      io_, std::move(*socket),
      [on_connection = std::move(on_connection)](wire::Frame frame) {
        if (frame.type != wire::MessageType::api_connection || frame.fds.empty()) return;
        auto told = wire::decode<wire::ApiConnection>(frame.payload);
        if (told) on_connection(std::move(told->context), std::move(frame.fds.front()));
      },
      std::move(on_closed));
  connection->send(wire::Control{to_text({{"verb", "api.connections"}})});
  return connection;
}

}  // namespace api
