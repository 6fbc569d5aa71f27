#include "api/once.h"

#include <algorithm>

#include "api/app.h"
#include "api/text.h"
#include "base/sha256.h"

namespace api {
namespace {

constexpr std::size_t kLongestKey = 255;

bool is_key(const std::string& text) {
  return text.size() <= kLongestKey &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

Response replayed(Response response) {
  response.headers.emplace_back("Idempotency-Replayed", "true");
  return response;
}

}  // namespace

std::optional<Once> begin_once(App& app, Exchange& exchange) {
  using Found = Idempotency::Found;
  const Request& request = exchange.request();
  const auto& key = request.header("idempotency-key");
  if (key.empty()) return Once{};
  if (!is_key(key)) {
    refuse(exchange, problem("invalid-request",
                             "Idempotency-Key: expected at most 255 printable characters"));
    return std::nullopt;
  }
  const auto hash = base::sha256(request.body);
  Once once{request.token->name + '\n' + request.path + '\n' + key,
            to_base64({reinterpret_cast<const char*>(hash.data()), hash.size()}),
            {}};
  switch (app.idempotency.begin(once.name, once.hash, now_ms())) {
    case Found::nothing:
      return once;
    case Found::exec:
      once.exec = app.idempotency.exec(once.name);
      return once;
    case Found::answered:
      exchange.reply(replayed(app.idempotency.response(once.name)));
      break;
    case Found::other:
      refuse(exchange, problem("idempotency-key-reused"));
      break;
    case Found::going_on:
      refuse(exchange, problem("request-in-progress"));
      break;
    case Found::too_many:
      refuse(exchange, problem("overloaded"));
      break;
  }
  return std::nullopt;
}

}  // namespace api
