#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace api {

/// What a token may do. Each includes the ones before it.
enum class Scope { read, exec, admin };

/// Somebody who may use the API. The file has the hash of the secret, never the secret.
struct Token {
  std::string name;
  base::Sha256 hash{};
  Scope scope = Scope::read;
  /// fnmatch(3) patterns of contexts it is for.
  std::vector<std::string> contexts;
  /// Patterns of contexts whose programs may use it, and "outside" for other machines; empty: from
  /// wherever it comes.
  std::vector<std::string> from = {};
  /// With `from`: also where it cannot be proven from where on this machine a request comes.
  bool is_local = false;

  bool is_bound() const { return !from.empty(); }
  /// From a program of `context`.
  bool may_come_from(const std::string& context) const;
  bool may_come_from_outside() const;
  bool may(Scope wanted) const { return scope >= wanted; }
  /// Empty: whatever concerns no single context.
  bool reaches(const std::string& context) const;
  /// For all contexts there are and may come.
  bool reaches_all() const;
};

/// What the programs of `context` may do that come through its own door. No secret leads to it.
std::shared_ptr<const Token> token_of_context(const std::string& context);

/// The same for who may use the daemon's control socket: everything.
std::shared_ptr<const Token> token_of_daemon();

/// The tokens of a file (docs/API.md).
class Tokens {
 public:
  /// Pure. The error names the place, never a hash.
  static base::Result<Tokens> parse(std::string_view text);
  /// The token with this secret, compared in a time that does not depend on it; null if there is
  /// none.
  std::shared_ptr<const Token> find(std::string_view secret) const;
  std::size_t count() const { return tokens_.size(); }

 private:
  std::vector<std::shared_ptr<const Token>> tokens_;
};

/// The secret of an Authorization header, or empty.
std::string_view bearer_of(std::string_view authorization);

}  // namespace api
