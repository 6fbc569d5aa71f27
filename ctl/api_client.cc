#include "ctl/api_client.h"

#include <thread>

#include "ctl/client.h"
#include "ctl/print.h"

namespace ctl {

using nlohmann::json;

namespace {

constexpr int kTries = 100;
constexpr std::chrono::milliseconds kPause{20};

/// By an API that ended meanwhile; the next one is there at once.
bool may_ask_again(const HttpRequest& request, const base::Error& error) {
  if (error.code == EAGAIN || error.code == EPIPE) return true;
  return error.code == ECONNRESET && request.method == "GET";
}

base::Result<HttpAnswer> ask_once(Client& client, const HttpRequest& request) {
  auto connection = client.api_connection();
  if (!connection) return tl::unexpected<base::Error>(connection.error());
  return HttpAnswer::ask(std::move(*connection), request);
}

}  // namespace

std::optional<HttpAnswer> ask_api(const Common& common, const HttpRequest& request) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) {
    complain("no daemon serves " + common.runtime_dir + " (" + client.error().message() + ")", 0);
    return {};
  }
  auto answer = ask_once(*client, request);
  for (int tries = 0; !answer && may_ask_again(request, answer.error()) && tries < kTries;
       ++tries) {
    std::this_thread::sleep_for(kPause);
    answer = ask_once(*client, request);
  }
  if (answer) return std::move(*answer);
  complain(answer.error().message(), 0);
  return {};
}

void complain_about(HttpAnswer& answer) {
  const auto body = answer.read_all();
  const json problem = body ? json::parse(*body, nullptr, false) : json();
  if (!problem.is_object()) {
    complain("the API answered " + std::to_string(answer.status()), 0);
    return;
  }
  std::string text = problem.value("title", "");
  if (problem.contains("detail")) text += ": " + problem.value("detail", "");
  for (const auto& error : problem.value("errors", json::array())) {
    text += "; " + error.value("pointer", "") + ": " + error.value("detail", "");
  }
  complain(printable(text) + " (" + problem.value("code", "") + ")", 0);
}

std::optional<json> ask_api_for_json(const Common& common, const HttpRequest& request) {
  auto answer = ask_api(common, request);
  if (!answer) return {};
  if (answer->is_error()) return complain_about(*answer), std::nullopt;
  const auto body = answer->read_all();
  if (!body) return complain(body.error().message(), 0), std::nullopt;
  json told = body->empty() ? json::object() : json::parse(*body, nullptr, false);
  if (told.is_discarded()) return complain("the API's answer is no JSON", 0), std::nullopt;
  return told;
}

bool is_exec_id(const std::string& word) { return word.starts_with("exec_"); }

}  // namespace ctl
