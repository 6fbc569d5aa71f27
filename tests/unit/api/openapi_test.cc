// The document is what clients are made from: it may say neither more nor less than the code does.

#include "api/openapi.h"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/exec_order.h"
#include "api/exec_result.h"
#include "api/problem.h"
#include "api/routes.h"

using nlohmann::json;

namespace {

const json& document() {
  static const json parsed = json::parse(api::kOpenApi);
  return parsed;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(c));
  return text;
}

/// "get /api/v1/info" → "info read".
using Operations = std::map<std::string, std::string>;

Operations told() {
  Operations operations;
  for (const auto& [path, methods] : document()["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      const json& scope = operation.at("x-airlock-scope");
      operations[method + " " + path] = operation.at("operationId").get<std::string>() + " " +
                                        (scope.is_null() ? "-" : scope.get<std::string>());
    }
  }
  return operations;
}

const json& schema(const std::string& name) { return document()["components"]["schemas"][name]; }

std::set<std::string> properties_of(const json& object) {
  std::set<std::string> names;
  for (const auto& [name, value] : object["properties"].items()) names.insert(name);
  return names;
}

}  // namespace

TEST_CASE("the document has all operations and no others", "[api][openapi]") {
  constexpr const char* kScopes[] = {"read", "exec", "admin"};
  Operations wanted;
  for (const auto& route : api::routes()) {
    wanted[lower(route.method) + " " + route.pattern] =
        std::string(route.operation) + " " +
        (route.scope ? kScopes[static_cast<std::size_t>(*route.scope)] : "-");
  }
  CHECK(told() == wanted);
}

TEST_CASE("the document has all problem codes and no others", "[api][openapi]") {
  std::set<std::string> wanted;
  for (const auto& kind : api::kProblemKinds) wanted.insert(kind.code);
  CHECK(schema("Problem")["properties"]["code"]["enum"].get<std::set<std::string>>() == wanted);
}

TEST_CASE("what the document says about a result is what is told", "[api][openapi]") {
  api::ExecFacts facts;
  facts.shell = "default";
  facts.exited = wire::Exited{};
  facts.exited->shell.no_checkpoint = "why";
  json result = api::to_json(facts, 0);
  facts.not_started = wire::NotStarted{};
  result.update(api::to_json(facts, 0));
  std::set<std::string> names;
  for (const auto& [name, value] : result.items()) names.insert(name);
  CHECK(properties_of(schema("Exec")) == names);
  for (const auto& name : schema("Exec")["required"]) {
    CHECK(api::to_json({}, 0).contains(name.get<std::string>()));
  }
}

TEST_CASE("each field of an exec request in the document is one", "[api][openapi]") {
  for (const auto& name : properties_of(schema("ExecRequest"))) {
    INFO(name);
    json body = {{"argv", {"true"}}};
    body[name] = json::object({{"unknown", 1}});  // wrong for all of them
    const auto order = api::read_exec_order(body);
    REQUIRE_FALSE(order);
    for (const auto& error : order.error().errors) {
      CHECK_FALSE((error.pointer == "/" + name && error.detail == "unknown field"));
    }
  }
}
