#include "api/tokens.h"

#include <fnmatch.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace api {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTokens = 1000;
constexpr std::string_view kOwnName = "context:";
constexpr const char* kDaemonName = "control.sock";
constexpr const char* kOutside = "outside";

bool matches(const std::string& pattern, const std::string& context) {
  return ::fnmatch(pattern.c_str(), context.c_str(), 0) == 0;
}

std::optional<base::Sha256> parse_hash(const std::string& text) {
  base::Sha256 hash{};
  if (text.size() != 2 * hash.size()) return std::nullopt;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    hash[i / 2] = static_cast<std::uint8_t>(hash[i / 2] << 4 | digit);
  }
  return hash;
}

std::optional<Scope> parse_scope(const std::string& name) {
  if (name == "read") return Scope::read;
  if (name == "exec") return Scope::exec;
  if (name == "admin") return Scope::admin;
  return std::nullopt;
}

std::optional<std::string> text_of(const json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

base::Result<std::vector<std::string>> names_in(const json& entry, const std::string& key,
                                                const json& otherwise, const std::string& place) {
  const auto list = entry.value(key, otherwise);
  if (!list.is_array()) return base::failure(place, 0, "expected '" + key + "', a list");
  std::vector<std::string> names;
  for (const auto& name : list) {
    if (!name.is_string()) return base::failure(place, 0, "expected names in '" + key + "'");
    names.push_back(name.get<std::string>());
  }
  return names;
}

base::Result<void> bind_to_places(Token& token, const json& entry, const std::string& place) {
  auto from = names_in(entry, "from", json::array(), place);
  if (!from) return tl::unexpected<base::Error>(from.error());
  const auto local = entry.value("local", json(false));
  const bool is_listed = !from->empty();
  if (entry.contains("from") && !is_listed) return base::failure(place, 0, "'from' names no place");
  if (!local.is_boolean() || (entry.contains("local") && !is_listed)) {
    return base::failure(place, 0, "expected 'local', true or false, and only beside 'from'");
  }
  token.from = std::move(*from);
  token.is_local = local.get<bool>();
  return {};
}

base::Result<Token> parse_token(const json& entry, const std::string& place) {
  if (!entry.is_object()) return base::failure(place, 0, "expected an object");
  for (const auto& [key, value] : entry.items()) {
    constexpr std::string_view kKnown[] = {"name", "sha256", "scope", "contexts", "from", "local"};
    if (std::ranges::find(kKnown, key) == std::end(kKnown)) {
      return base::failure(place, 0, "expected name, sha256, scope, contexts, from and local only");
    }
  }
  const auto name = text_of(entry, "name");
  const auto hash = text_of(entry, "sha256");
  const auto scope = text_of(entry, "scope");
  if (!name || name->empty() || name->size() > 64) {
    return base::failure(place, 0, "expected 'name', a string of at most 64 bytes");
  }
  const auto bytes = hash ? parse_hash(*hash) : std::nullopt;
  if (!bytes) return base::failure(place, 0, "expected 'sha256', 64 digits of 0-9 a-f");
  const auto wanted = scope ? parse_scope(*scope) : std::nullopt;
  if (!wanted) return base::failure(place, 0, "expected 'scope': read, exec or admin");
  if (name->starts_with(kOwnName) || *name == kDaemonName) {
    return base::failure(place, 0, "'name' begins as those that airlock gives");
  }
  auto contexts = names_in(entry, "contexts", json::array({"*"}), place);
  if (!contexts) return tl::unexpected<base::Error>(contexts.error());
  Token token{.name = *name, .hash = *bytes, .scope = *wanted, .contexts = std::move(*contexts)};
  if (auto bound = bind_to_places(token, entry, place); !bound) {
    return tl::unexpected<base::Error>(bound.error());
  }
  return token;
}

}  // namespace

bool Token::reaches(const std::string& context) const {
  if (context.empty()) return true;
  return std::any_of(contexts.begin(), contexts.end(),
                     [&context](const std::string& pattern) { return matches(pattern, context); });
}

// A context may be called "outside"; only patterns that say more name it.
bool Token::may_come_from(const std::string& context) const {
  return std::any_of(from.begin(), from.end(), [&context](const std::string& pattern) {
    return pattern != kOutside && matches(pattern, context);
  });
}

bool Token::may_come_from_outside() const {
  return std::find(from.begin(), from.end(), kOutside) != from.end();
}

std::shared_ptr<const Token> token_of_daemon() {
  return std::make_shared<const Token>(
      Token{.name = kDaemonName, .scope = Scope::admin, .contexts = {"*"}});
}

std::shared_ptr<const Token> token_of_context(const std::string& context) {
  return std::make_shared<const Token>(
      Token{.name = std::string(kOwnName) + context, .scope = Scope::exec, .contexts = {context}});
}

bool Token::reaches_all() const {
  return std::find(contexts.begin(), contexts.end(), "*") != contexts.end();
}

base::Result<Tokens> Tokens::parse(std::string_view text) {
  Tokens tokens;
  if (text.empty()) return tokens;
  const json root = json::parse(text, nullptr, false);
  const auto list = root.is_object() ? root.find("tokens") : root.end();
  if (!root.is_object() || root.size() != 1 || list == root.end() || !list->is_array()) {
    return base::failure("tokens", 0, "expected {\"tokens\": [...]}");
  }
  if (list->size() > kMostTokens) return base::failure("tokens", 0, "too many");
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto token = parse_token((*list)[i], "token " + std::to_string(i + 1));
    if (!token) return tl::unexpected<base::Error>(token.error());
    tokens.tokens_.push_back(std::make_shared<const Token>(std::move(*token)));
  }
  return tokens;
}

std::shared_ptr<const Token> Tokens::find(std::string_view secret) const {
  if (secret.empty()) return nullptr;
  const auto hash = base::sha256(secret);
  std::shared_ptr<const Token> found;
  for (const auto& token : tokens_) {
    if (base::is_equal_in_constant_time(token->hash, hash)) found = token;
  }
  return found;
}

std::string_view bearer_of(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  while (authorization.starts_with(' ')) authorization.remove_prefix(1);
  return authorization;
}

}  // namespace api
