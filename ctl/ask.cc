#include "ctl/ask.h"

#include "ctl/client.h"

namespace ctl {

using nlohmann::json;

std::optional<json> ask(const Common& common, const std::string& verb, json fields) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) {
    complain("no daemon serves " + common.runtime_dir + " (" + client.error().message() +
                 "): start one with 'airlock up'",
             0);
    return {};
  }
  auto answer = client->ask(verb, std::move(fields));
  if (answer) return std::move(*answer);
  complain(answer.error().message(), 0);
  return {};
}

std::string text_of(const json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return "";
  if (found->is_string())
    return found->get<std::string>().empty() ? "-" : found->get<std::string>();
  return found->dump();
}

std::optional<std::vector<std::string>> context_names(const Common& common,
                                                      const std::string& context) {
  if (!context.empty()) return std::vector{context};
  const auto answer = ask(common, "ctx.list");
  if (!answer) return {};
  std::vector<std::string> names;
  for (const auto& each : (*answer)["contexts"]) names.push_back(text_of(each, "name"));
  return names;
}

}  // namespace ctl
