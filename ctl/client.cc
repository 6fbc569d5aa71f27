#include "ctl/client.h"

#include <cstdlib>

#include "wire/requester.h"

namespace ctl {

using nlohmann::json;

std::string default_runtime_dir() {
  const char* chosen = std::getenv("AIRLOCK_RUNTIME_DIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/run/airlock";
}

base::Result<Client> Client::connect(const std::string& runtime_dir) {
  auto socket = wire::connect_to(runtime_dir + "/control.sock");
  if (!socket) return tl::unexpected<base::Error>(socket.error());
  return Client(std::move(*socket));
}

base::Result<wire::Frame> Client::next_frame() {
  auto frame = receiver_.receive(socket_.borrow());
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  if (!*frame) return base::failure("receive", EAGAIN);
  if ((*frame)->type == wire::MessageType::not_started) {
    auto refusal = wire::decode<wire::NotStarted>((*frame)->payload);
    if (refusal) return base::failure(refusal->message, 0);
  }
  return std::move(**frame);
}

namespace {

base::Result<json> read_answer(const wire::Frame& frame) {
  auto reply = wire::decode<wire::ControlReply>(frame.payload);
  if (!reply) return tl::unexpected<base::Error>(reply.error());
  json answer = json::parse(reply->json, nullptr, false);
  if (!answer.is_object()) return base::failure("read the daemon's answer", EBADMSG);
  return answer;
}

}  // namespace

base::Result<wire::Frame> Client::exchange(const std::string& verb, json fields) {
  fields["verb"] = verb;
  auto sent = wire::send_message(
      socket_.borrow(), wire::Control{fields.dump(-1, ' ', false, json::error_handler_t::replace)});
  // A daemon that refuses a client says why and closes: that may be there although sending failed.
  auto frame = next_frame();
  if (!sent && !frame && frame.error().code != 0) return tl::unexpected<base::Error>(sent.error());
  return frame;
}

base::Result<json> Client::ask(const std::string& verb, json fields) {
  const auto frame = exchange(verb, std::move(fields));
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  auto answer = read_answer(*frame);
  if (answer && answer->contains("error")) {
    return base::failure((*answer)["error"].value("message", "the daemon refused"), 0);
  }
  return answer;
}

base::Result<base::UniqueFd> Client::api_connection() {
  auto frame = exchange("api.connect", json::object());
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  const auto answer = read_answer(*frame);
  if (!answer) return tl::unexpected<base::Error>(answer.error());
  if (const auto error = answer->find("error"); error != answer->end()) {
    // Its code only where that says something: message() would repeat it.
    const int code = error->value("errno", 0);
    return base::failure(error->value("message", "the daemon refused"),
                         code == EAGAIN ? EAGAIN : 0);
  }
  if (frame->fds.empty()) return base::failure("connect to the API", EBADMSG);
  return std::move(frame->fds.front());
}

base::Result<json> Client::next_event() {
  auto frame = next_frame();
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  auto event = wire::decode<wire::Event>(frame->payload);
  if (!event) return tl::unexpected<base::Error>(event.error());
  return json::parse(event->json, nullptr, false);
}

}  // namespace ctl
