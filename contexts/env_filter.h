#pragma once

// What of an environment may enter another context: the rules for names and values. Pure: no I/O,
// no clock, no log. environment.h merges environments with it; routerd logs what it blocked (names
// only).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace contexts {

/// "NAME=value" entries in order, raw bytes, no NUL. As the kernel allows it, an entry may lack '='
/// and a name may occur more than once; then the first one counts, as for getenv(3).
using Environment = std::vector<std::string>;

/// Shorter secrets are not looked for in values: they would match by chance. Bytes.
inline constexpr std::size_t kMinSecretSize = 8;

/// What is configured for the environment of programs routed into one context.
struct EnvPolicy {
  enum class Base {
    clean,    ///< start from the invoker's basic names only (`is_basic_name`)
    inherit,  ///< start from all the invoker has, through the filter
  };

  std::vector<std::string> pass_env;   ///< names or globs (only '*'), case-sensitive
  std::vector<std::string> block_env;  ///< names or globs (only '*'), case-sensitive
  std::vector<std::string> secrets;    ///< values; those below kMinSecretSize are not looked for
  std::vector<std::string> pinned;     ///< "NAME=value" of the target context, win over everything
  Base base = Base::clean;
};

/// Why an entry passes or not.
enum class Verdict {
  pass,
  loader,             ///< steers ld.so: LD_*, GLIBC_TUNABLES
  airlock_variable,   ///< AIRLOCK_*, SANDBOX_ROUTE_TO_CONTEXT
  secret_name,        ///< the name says that the value is a credential or leads to one
  secret_value,       ///< the entry contains a platform secret
  url_password,       ///< the value contains scheme://user:password@host
  blocked_by_config,  ///< block_env
};

/// "secret_name" and so on, for logs and the route log.
std::string_view to_string(Verdict verdict);

/// True for PATH HOME USER LOGNAME SHELL LANG LC_* TERM TZ: names every program expects and no
/// credential is kept in.
bool is_basic_name(std::string_view name);

/// True if `name` is that of a credential or of a way to one (agent socket, key file). ASCII case
/// does not count.
bool is_secret_like_name(std::string_view name);

/// True if `text` contains a URL with a non-empty password: scheme://user:password@ or
/// scheme://:password@. A user alone is none.
bool has_url_password(std::string_view text);

/// A fixed set of strings to be found anywhere in a text in one pass (Wu-Manber).
class SubstringSet {
 public:
  /// Needles of fewer than 2 bytes are left out.
  explicit SubstringSet(std::vector<std::string> needles);

  /// True if `text` contains one of the needles. Reads about 1 in window-1 bytes of it.
  bool found_in(std::string_view text) const;

 private:
  static constexpr std::size_t kTableSize = 4096;  // ASCII pairs spread well, and it stays in L1
  static constexpr std::size_t kMaxWindow = 8;

  static std::size_t hash_pair(const char* at);
  bool starts_at(std::string_view text) const;

  std::vector<std::string> needles_;
  std::size_t window_ = kMaxWindow;             // bytes of each needle that the table knows
  std::array<std::uint8_t, kTableSize> shift_;  // pair at the window's end -> safe step, bytes
};

/// The filter between the platform and one target context. Build it once per agent, not per exec.
///
/// pass_env and block_env come first, the most specific pattern that matches decides: a name beats
/// a glob, of two globs the one with more literal bytes wins, block_env wins a tie. pass_env thus
/// beats every other rule, with one exception: an LD_PRELOAD or LD_AUDIT that names airlock's
/// interposer.
class EnvFilter {
 public:
  /// Platform secrets are `policy.secrets` and the values of secret-like names in
  /// `platform_start_env` which pass_env does not let through anyway.
  ///
  /// A value of the latter kind that is no secret by itself (one word or number of fewer than 16
  /// bytes, such as "postgres"; the path or address of a credential) is not looked for in basic
  /// names: losing PATH=/usr/lib/postgresql/bin would protect nothing.
  EnvFilter(const EnvPolicy& policy, std::span<const std::string> platform_start_env);

  /// Verdict on one "NAME=value" entry. An entry without '=' is judged as a name and as a value.
  Verdict verdict(std::string_view entry) const;

  /// The same for a name and a value that are apart.
  Verdict verdict(std::string_view name, std::string_view value) const;

  /// How a blocked entry may be called in a log: its name, or "(withheld)" where that is unsafe
  /// because it has no '=' or its name contains a platform secret.
  std::string loggable_name(std::string_view entry) const;

 private:
  struct NameRule {
    std::string pattern;
    bool block = false;
    bool exact = false;
  };

  const NameRule* rule_for(std::string_view name) const;
  static std::vector<NameRule> sorted_rules(const EnvPolicy& policy);
  void collect_secrets(const EnvPolicy& policy, std::span<const std::string> platform_start_env);

  std::vector<NameRule> rules_;  // most specific first
  SubstringSet secrets_{{}};
  SubstringSet weak_secrets_{{}};  // not looked for in basic names
};

}  // namespace contexts
