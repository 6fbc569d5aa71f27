#include "contexts/env_filter.h"

#include <algorithm>
#include <utility>

namespace contexts {
namespace {

using std::string_view;

// Names in upper case, or globs with '*' at one end or both; see NameSet.

// Hold the path or address of something that gives access. The value itself is no secret.
constexpr string_view kDoorNames =
    "AWS_CONFIG_FILE AZURE_CONFIG_DIR BOTO_CONFIG BUILDKIT_HOST CLOUDSDK_CONFIG "
    "CONTAINERD_ADDRESS CONTAINER_HOST DBUS_* DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_HOST "
    "GH_CONFIG_DIR GNOME_KEYRING_* GNUPGHOME GOOGLE_APPLICATION_CREDENTIALS GPG_AGENT_INFO "
    "ICEAUTHORITY KRB5CCNAME KRB5_CLIENT_KTNAME KRB5_KTNAME KUBECONFIG NETRC PGPASSFILE "
    "PGSERVICEFILE SSH_AGENT_PID SSH_AUTH_SOCK VSCODE_GIT_IPC_HANDLE VSCODE_IPC_HOOK_CLI "
    "XAUTHORITY";
// A secret-like name with one of these ends leads to the secret, too: DB_PASSWORD_FILE.
constexpr string_view kDoorEnds = "*_FILE *_PATH *_DIR *_SOCK *_SOCKET";

// "*_AUTH*" belongs here; has_auth_part() makes the exception it needs.
constexpr string_view kSecretNames =
    "*ACCESSKEY* *ACCESS_KEY* *APIKEY* *API_KEY* AUTH AUTHORIZATION AUTH_HEADER* *BEARER* "
    "*BINDPW BW_SESSION *CONNECTIONSTRING* *CONNECTION_STRING* *COOKIE *COOKIES *CREDENTIAL* "
    "*_CREDS CREDS *_CUSTOM_HEADERS *DB_PWD *_DSN DSN *ENCRYPTION_KEY* *_EXTRA_HEADERS "
    "FASTLANE_SESSION *_HTTP_HEADERS *JWT *_JWT_* JWT_* *_KEY KEY *_KEY_B64 *_KEY_BASE64 "
    "*_KEY_DATA *_KEY_ID *_KEY_JSON *_KEY_PEM *_LOGS_HEADERS *_METRICS_HEADERS *_MNEMONIC "
    "MNEMONIC MYSQL_PWD OP_SESSION_* *_OTLP_HEADERS *_OTP *_PASS *PASSCODE* *PASSCOMMAND* PASS "
    "*PASSPHRASE* *PASSWD* *PASSWORD* *_PAT PAT *PRIVATEKEY* *PRIVATE_KEY* *_PSK *_PW "
    "*_REQUEST_HEADERS *_SALT *_SAS *SECRET* *SIGNING_KEY* SSHPASS *TOKEN *_TOKEN_* TOKEN_* "
    "*_TRACES_HEADERS *WEBHOOK*";

constexpr string_view kBasicNames = "HOME LANG LC_* LOGNAME PATH SHELL TERM TZ USER";

constexpr string_view kInterposerFile = "libairlock-preload";
constexpr string_view kWhitespace = " \t\r\n\v\f";
constexpr std::size_t kWeakWordSize = 16;  // bytes; shorter words and numbers are guessable anyway

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Only '*' is special. Backtracks to the last star alone, so it is never exponential.
bool glob_matches(string_view pattern, string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == string_view::npos;
}

std::vector<std::string> words_of(string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Names and globs sorted by kind when built, since every name of every routed exec is looked up.
class NameSet {
 public:
  explicit NameSet(string_view patterns) {
    std::vector<std::string> parts;
    for (std::string& pattern : words_of(patterns)) {
      const bool open_front = pattern.front() == '*';
      const bool open_back = pattern.back() == '*';
      std::erase(pattern, '*');
      if (open_front && open_back) {
        parts.push_back(pattern);
      } else if (open_front) {
        suffixes_[slot(pattern.back())].push_back(pattern);
      } else {
        (open_back ? prefixes_ : names_)[slot(pattern.front())].push_back(pattern);
      }
    }
    parts_ = SubstringSet(std::move(parts));
  }

  bool contains(string_view name) const {
    if (name.empty()) return false;
    const auto is = [&](const std::string& other) { return name == other; };
    const auto starts = [&](const std::string& prefix) { return name.starts_with(prefix); };
    const auto ends = [&](const std::string& suffix) { return name.ends_with(suffix); };
    return std::ranges::any_of(names_[slot(name.front())], is) ||
           std::ranges::any_of(prefixes_[slot(name.front())], starts) ||
           std::ranges::any_of(suffixes_[slot(name.back())], ends) || parts_.found_in(name);
  }

 private:
  using Bucket = std::vector<std::string>;
  static std::size_t slot(char c) { return static_cast<unsigned char>(c) % 32; }

  std::array<Bucket, 32> names_;     // by first byte
  std::array<Bucket, 32> prefixes_;  // by first byte
  std::array<Bucket, 32> suffixes_;  // by last byte
  SubstringSet parts_{{}};
};

std::string upper_case(string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

// GITHUB_TOKEN_2 and TOKEN2 are named like GITHUB_TOKEN and TOKEN.
string_view without_number(string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == string_view::npos || last + 1 == name.size()) return name;
  name = name.substr(0, last + 1);
  if (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
  return name;
}

// "_AUTH" anywhere, but not of a commit's or crate's author: GIT_AUTHOR_NAME, CARGO_PKG_AUTHORS.
bool has_auth_part(string_view name) {
  for (std::size_t at = 0; (at = name.find("_AUTH", at)) != string_view::npos;) {
    at += 5;
    const string_view rest = name.substr(at);
    const bool is_author =
        rest.starts_with("OR") && (rest.size() == 2 || rest[2] == '_' || rest[2] == 'S');
    if (!is_author) return true;
  }
  return false;
}

// git's configuration by environment. The name of a setting is not a key in the sense of _KEY.
bool is_git_config_pair(string_view name) {
  constexpr string_view kPrefix = "GIT_CONFIG_KEY_";
  return name.starts_with(kPrefix) && std::ranges::all_of(name.substr(kPrefix.size()), is_digit);
}

enum class NameKind { ordinary, secret, door };

NameKind kind_of_name(string_view any_case) {
  static const NameSet doors(kDoorNames);
  static const NameSet door_ends(kDoorEnds);
  static const NameSet secrets(kSecretNames);
  const std::string name = upper_case(any_case);
  if (doors.contains(name)) return NameKind::door;
  if (is_git_config_pair(name)) return NameKind::ordinary;
  const string_view stem = without_number(name);
  const bool is_secret_like = secrets.contains(name) || has_auth_part(name) ||
                              (stem.size() < name.size() && secrets.contains(stem));
  if (!is_secret_like) return NameKind::ordinary;
  return door_ends.contains(name) ? NameKind::door : NameKind::secret;
}

// `rest` is what follows "://", up to the end of the word, and has a '@' somewhere.
bool authority_has_password(string_view rest) {
  const string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t colon = authority.find(':');
  if (colon == string_view::npos) return false;
  const std::size_t at = authority.rfind('@');
  if (at != string_view::npos) return colon + 1 < at;
  // No '@' before the first slash: either host:port/…@…, or a password with an unescaped slash.
  if (authority.starts_with('[')) return false;  // an IPv6 address
  return !std::ranges::all_of(authority.substr(colon + 1), is_digit);
}

bool word_has_url_password(string_view word) {
  const std::size_t last_at = word.rfind('@');
  if (last_at == string_view::npos) return false;
  for (std::size_t at = 1; (at = word.find("://", at)) < last_at; at += 3) {
    const char before = word[at - 1];
    const bool is_scheme = is_letter(before) || is_digit(before);
    if (is_scheme && authority_has_password(word.substr(at + 3))) return true;
  }
  return false;
}

string_view trimmed(string_view text) {
  const std::size_t first = text.find_first_not_of(kWhitespace);
  if (first == string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhitespace) - first + 1);
}

bool is_weak_word(string_view value) {
  return value.size() < kWeakWordSize &&
         (std::ranges::all_of(value, is_letter) || std::ranges::all_of(value, is_digit));
}

bool is_interposer(string_view name, string_view entry) {
  return (name == "LD_PRELOAD" || name == "LD_AUDIT") &&
         entry.find(kInterposerFile) != string_view::npos;
}

}  // namespace

string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::loader:
      return "loader";
    case Verdict::airlock_variable:
      return "airlock_variable";
    case Verdict::secret_name:
      return "secret_name";
    case Verdict::secret_value:
      return "secret_value";
    case Verdict::url_password:
      return "url_password";
    case Verdict::blocked_by_config:
      return "blocked_by_config";
  }
  return "unknown";
}

bool is_basic_name(string_view name) {
  static const NameSet names(kBasicNames);
  return names.contains(name);
}

bool is_secret_like_name(string_view name) { return kind_of_name(name) != NameKind::ordinary; }

bool has_url_password(string_view text) {
  if (text.find('@') == string_view::npos) return false;  // most: memchr is fast, rfind is not
  // Word by word, each byte looked at a few times at most: values are up to 128 kB and not ours.
  const std::size_t last_at = text.rfind('@');
  for (std::size_t begin = 0; begin < last_at;) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"<>", begin), text.size());
    if (word_has_url_password(text.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

SubstringSet::SubstringSet(std::vector<std::string> needles) : needles_(std::move(needles)) {
  std::erase_if(needles_, [](const std::string& needle) { return needle.size() < 2; });
  for (const std::string& needle : needles_) window_ = std::min(window_, needle.size());
  shift_.fill(static_cast<std::uint8_t>(window_ - 1));
  for (const std::string& needle : needles_) {
    for (std::size_t i = 0; i + 1 < window_; ++i) {
      std::uint8_t& step = shift_[hash_pair(&needle[i])];
      step = std::min(step, static_cast<std::uint8_t>(window_ - 2 - i));
    }
  }
}

std::size_t SubstringSet::hash_pair(const char* at) {
  const auto first = static_cast<unsigned char>(at[0]);
  const auto second = static_cast<unsigned char>(at[1]);
  return ((std::size_t{first} << 5) ^ second) % kTableSize;
}

bool SubstringSet::starts_at(string_view text) const {
  return std::ranges::any_of(needles_,
                             [&](const std::string& needle) { return text.starts_with(needle); });
}

bool SubstringSet::found_in(string_view text) const {
  if (needles_.empty()) return false;
  for (std::size_t i = 0; i + window_ <= text.size();) {
    const std::size_t step = shift_[hash_pair(text.data() + i + window_ - 2)];
    if (step == 0 && starts_at(text.substr(i))) return true;
    i += std::max<std::size_t>(step, 1);
  }
  return false;
}

EnvFilter::EnvFilter(const EnvPolicy& policy, std::span<const std::string> platform_start_env)
    : rules_(sorted_rules(policy)) {
  collect_secrets(policy, platform_start_env);
}

std::vector<EnvFilter::NameRule> EnvFilter::sorted_rules(const EnvPolicy& policy) {
  std::vector<NameRule> rules;
  const auto add = [&](const std::vector<std::string>& patterns, bool block) {
    for (const std::string& pattern : patterns) {
      rules.push_back({pattern, block, pattern.find('*') == std::string::npos});
    }
  };
  add(policy.block_env, true);  // first, so that a stable sort lets it win a tie
  add(policy.pass_env, false);
  const auto literal_size = [](const NameRule& rule) {
    return std::ranges::count_if(rule.pattern, [](char c) { return c != '*'; });
  };
  std::ranges::stable_sort(rules, [&](const NameRule& a, const NameRule& b) {
    if (a.exact != b.exact) return a.exact;
    return literal_size(a) > literal_size(b);
  });
  return rules;
}

void EnvFilter::collect_secrets(const EnvPolicy& policy,
                                std::span<const std::string> platform_start_env) {
  std::vector<std::string> strong;
  std::vector<std::string> weak;
  for (const std::string& secret : policy.secrets) {
    if (secret.size() >= kMinSecretSize) strong.push_back(secret);
  }
  for (const string_view entry : platform_start_env) {
    const std::size_t equals = entry.find('=');
    if (equals == string_view::npos) continue;
    const string_view name = entry.substr(0, equals);
    const string_view value = trimmed(entry.substr(equals + 1));
    const NameKind kind = kind_of_name(name);
    if (kind == NameKind::ordinary || value.size() < kMinSecretSize) continue;
    const NameRule* rule = rule_for(name);
    if (rule != nullptr && !rule->block) continue;
    const bool is_weak = kind == NameKind::door || is_weak_word(value);
    (is_weak ? weak : strong).emplace_back(value);
  }
  secrets_ = SubstringSet(std::move(strong));
  weak_secrets_ = SubstringSet(std::move(weak));
}

const EnvFilter::NameRule* EnvFilter::rule_for(string_view name) const {
  const auto found = std::ranges::find_if(rules_, [&](const NameRule& rule) {
    return rule.exact ? rule.pattern == name : glob_matches(rule.pattern, name);
  });
  return found == rules_.end() ? nullptr : &*found;
}

Verdict EnvFilter::verdict(string_view entry) const {
  const string_view name = entry.substr(0, entry.find('='));
  if (is_interposer(name, entry)) return Verdict::loader;
  if (const NameRule* rule = rule_for(name)) {
    return rule->block ? Verdict::blocked_by_config : Verdict::pass;
  }
  if (name.starts_with("LD_") || name == "GLIBC_TUNABLES") return Verdict::loader;
  if (name.starts_with("AIRLOCK_") || name == "SANDBOX_ROUTE_TO_CONTEXT") {
    return Verdict::airlock_variable;
  }
  if (is_secret_like_name(name)) return Verdict::secret_name;
  // The whole entry: a secret may hold a '=', and a name can be one.
  if (secrets_.found_in(entry)) return Verdict::secret_value;
  if (!is_basic_name(name) && weak_secrets_.found_in(entry)) return Verdict::secret_value;
  return has_url_password(entry) ? Verdict::url_password : Verdict::pass;
}

Verdict EnvFilter::verdict(string_view name, string_view value) const {
  std::string entry;
  entry.reserve(name.size() + 1 + value.size());
  entry.append(name).append(1, '=').append(value);
  return verdict(entry);
}

std::string EnvFilter::loggable_name(string_view entry) const {
  const std::size_t equals = entry.find('=');
  const string_view name = entry.substr(0, equals);
  const bool is_unsafe = equals == string_view::npos || secrets_.found_in(name) ||
                         weak_secrets_.found_in(name) || has_url_password(name);
  return is_unsafe ? "(withheld)" : std::string(name);
}

}  // namespace contexts
