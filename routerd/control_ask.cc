#include "routerd/control_ask.h"

namespace routerd {

using nlohmann::json;

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

void reply(FrameSession& session, json answer) {
  answer["ok"] = !answer.contains("error");
  session.send(wire::MessageType::control_reply, wire::encode(wire::ControlReply{to_text(answer)}));
}

json error_json(const base::Error& error) {
  return {{"error", {{"errno", error.code}, {"message", error.message()}}}};
}

void fail(FrameSession& session, const base::Error& error) { reply(session, error_json(error)); }

void reply_or_fail(const Ask& ask, base::Result<json> answer) {
  if (!answer) return fail(ask.session, answer.error());
  reply(ask.session, std::move(*answer));
}

}  // namespace routerd
