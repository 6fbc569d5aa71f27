#include "contexts/shell/loop_script.h"

#include <algorithm>
#include <cstdlib>

#include "contexts/shell/shell_protocol.h"

namespace contexts::shell {
namespace {

using Entries = std::vector<std::pair<std::string_view, std::string_view>>;

// `builtin`, quoted, so that neither aliases nor functions of the user are in the way. A function
// that is itself called so is taken out of the way by kUncover.
const std::string kBuiltin = "\\builtin ";

// What a script does is on one line up to the command, and on one line behind it: bash counts
// lines, and names them in its messages.
constexpr const char* kNext = "; ";
/// For errexit and for ERR traps a command that is allowed to fail.
constexpr const char* kMayFail = " || \\builtin :; ";

// A function called `builtin` hides the real one, unless it passes everything on. Only POSIX mode
// has commands that no function hides, `unset` among them, and an assignment is enough to get
// there. That mode changes two options which then need to be put back.
constexpr const char* kUncover =
    "if \\builtin false || ! \\builtin true; then "
    "__airlock_options=:$BASHOPTS:$SHELLOPTS:; POSIXLY_CORRECT=1; "
    "\\declare -f builtin >&0; \\unset -f builtin; "
    "if [[ $__airlock_options != *:posix:* ]]; then \\unset -v POSIXLY_CORRECT; fi; "
    "if [[ $__airlock_options == *:expand_aliases:* ]]; then \\builtin shopt -s expand_aliases; "
    "fi; "
    "if [[ $__airlock_options != *:inherit_errexit:* ]]; then \\builtin shopt -u inherit_errexit; "
    "fi; \\builtin unset -v __airlock_options; fi; ";

constexpr const char* kMust = " || \\builtin exit 126; ";

std::string to_receiver(int number) { return kBuiltin + "kill -0 " + std::to_string(number); }

/// `$?` as it was. An ERR trap or errexit hears nothing of it: both let `!` and what is before &&
/// be.
std::string status_line(int status) {
  if (status == 0) return "\\builtin :; ";
  if (status == 1) return "! \\builtin :; ";
  return "(\\builtin exit " + std::to_string(status) + ") && \\builtin :; ";
}

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::string export_line(std::string_view entry) {
  const auto name = name_in(entry);
  if (!is_shell_name(name) || name.size() == entry.size()) return {};
  return kBuiltin + "export " + std::string(name) + "=" + quoted(entry.substr(name.size() + 1)) +
         kMayFail;
}

std::string unset_line(std::string_view name) {
  if (!is_shell_name(name)) return {};
  return kBuiltin + "unset -v " + std::string(name) + kMayFail;
}

/// The host has seen that it can be entered; should that have changed, no command runs elsewhere.
std::string enter_line(const std::string& folder) {
  return kBuiltin + "cd -- " + quoted(folder) + kMust;
}

std::string end_field() { return kBuiltin + "printf '\\0' >&0" + kNext; }

/// What the builtin prints is a field.
std::string say(const std::string& what) { return kBuiltin + what + " >&0" + kNext + end_field(); }

std::string say_end(std::string_view nonce) { return say("printf %s " + std::string(nonce)); }

/// What this command alone has.
std::vector<std::string> scoped_names(const CommandText& text) {
  std::vector<std::string> names;
  if (!text.scoped_folder.empty()) names = {"OLDPWD", "PWD"};
  for (const auto entry : text.scoped.views()) {
    if (is_shell_name(name_in(entry))) names.emplace_back(name_in(entry));
  }
  return names;
}

std::string begin_lines(const CommandText& text) {
  std::string script;
  for (const auto entry : text.set.views()) script += export_line(entry);
  for (const auto name : text.unset.views()) script += unset_line(name);
  if (!text.folder.empty()) script += enter_line(text.folder);
  script += say("printf %s \"${PWD-}\"") + say("export -p");
  // One by one: the first that is not set would be the last that is told.
  for (const auto& name : scoped_names(text)) {
    script += kBuiltin + "declare -p " + name + " >&0" + kMayFail;
  }
  return script;
}

/// With what had to be out of the way until now: a DEBUG trap hears of every command, an ERR trap
/// would hear of a failure twice, of the user's command and of the `eval` that it makes fail.
std::string user_text(const CommandText& text, const LoopState& last) {
  std::string before;
  if (!last.error_trap.empty())
    before = kBuiltin + last.error_trap + status_line(last.status) + "\n";
  if (last.is_traced) before += kBuiltin + "set -x\n";
  if (!last.debug_trap.empty()) before += kBuiltin + last.debug_trap;
  // The word behind `function` is no alias.
  if (!last.own_builtin.empty()) before += "function " + last.own_builtin;
  return before + text.command;
}

/// Each is "declare -x NAME[=VALUE]" ("export NAME…" in POSIX mode) on lines of its own; a value
/// has line ends only within quotes, where a line may look like anything.
Entries parse_exports(std::string_view text) {
  Entries entries;
  while (!text.empty()) {
    bool is_quoted = false;
    std::size_t end = 0;
    for (; end < text.size() && (is_quoted || text[end] != '\n'); ++end) {
      if (text[end] == '\\') {
        ++end;
      } else if (text[end] == '"') {
        is_quoted = !is_quoted;
      } else if (text[end] == '\'' && !is_quoted) {  // $'…', which has no line end in it
        while (++end < text.size() && text[end] != '\'') end += text[end] == '\\' ? 1 : 0;
      }
    }
    std::string_view entry = text.substr(0, std::min(end, text.size()));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = std::min(entry.find('='), entry.size());
    const auto name_at = entry.substr(0, equals).rfind(' ') + 1;
    entries.emplace_back(entry.substr(name_at, equals - name_at), entry.substr(equals));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool has_name(const wire::StringList& list, std::string_view name) {
  const auto all = list.views();
  return std::any_of(all.begin(), all.end(),
                     [name](std::string_view entry) { return name_in(entry) == name; });
}

}  // namespace

std::string quoted(std::string_view bytes) {
  std::string word = "$'";
  for (const char byte : bytes) {
    const auto number = static_cast<unsigned char>(byte);
    if (byte == '\'' || byte == '\\') {
      word.append({'\\', byte});
    } else if (number >= ' ' && number < 0x7f) {
      word += byte;
    } else if (byte == '\n') {
      word += "\\n";
    } else {
      const auto digit = [number](int shift) {
        return static_cast<char>('0' + ((number >> shift) & 7));
      };
      word.append({'\\', digit(6), digit(3), digit(0)});
    }
  }
  return word + "'";
}

bool is_shell_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [is_letter](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string first_script(std::string_view nonce, std::string_view preload) {
  std::string script = to_receiver(kShellLoopBegin) + kMust;
  script += preload.empty() ? unset_line("LD_PRELOAD")
                            : export_line("LD_PRELOAD=" + std::string(preload));
  script += kBuiltin + "shopt -s expand_aliases" + kNext;  // as at a prompt
  script += kBuiltin + "exec 2>/dev/null" + kNext;
  return script + empty_script(nonce);
}

std::string empty_script(std::string_view nonce) { return say_end(nonce) + "\n"; }

std::string command_script(std::string_view nonce, const CommandText& text, const LoopState& last) {
  std::string script = to_receiver(kShellLoopUsage) + kMust;
  script += begin_lines(text) + end_field() + say_end(nonce);
  for (const auto entry : text.scoped.views()) script += export_line(entry);
  if (!text.scoped_folder.empty()) script += enter_line(text.scoped_folder);
  // bash saves what it redirects and puts it back. Were it to redirect to the requester's
  // descriptors itself, it would hold copies of them, and so would its subshells.
  script += "{ " + to_receiver(kShellLoopTake) + kMust + status_line(last.status) + kBuiltin +
            "eval " + quoted(user_text(text, last)) + "; } </dev/null >/dev/null 2>/dev/null\n";
  script += "__airlock_status=$?" + std::string(kNext);
  script += kUncover;
  script += kBuiltin + "printf '\\0%s\\0%s\\0' \"$__airlock_status\" \"$-\" >&0" + kNext;
  script += kBuiltin + "set +x" + kNext;
  script += unset_line("__airlock_status");
  script += say("trap -p DEBUG") + kBuiltin + "trap - DEBUG" + kNext;
  script += say("trap -p ERR") + kBuiltin + "trap - ERR" + kNext;
  return script + say("export -p") + to_receiver(kShellLoopUsage) + kMayFail + say_end(nonce) +
         "\n";
}

std::optional<std::vector<std::string>> take_fields(std::string& heard, std::string_view nonce) {
  const std::string end = std::string(nonce) + '\0';
  const auto at = heard.find(end);
  if (at == std::string::npos) return {};
  std::vector<std::string> fields;
  std::string_view rest = std::string_view(heard).substr(0, at);
  while (!rest.empty()) {
    const auto length = std::min(rest.find('\0'), rest.size());
    fields.emplace_back(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  heard.erase(0, at + end.size());
  return fields;
}

std::optional<Begun> begun_of(std::vector<std::string> fields) {
  if (fields.size() != 3) return {};
  return Begun{std::move(fields[0]), std::move(fields[1]), std::move(fields[2])};
}

std::optional<Finished> finished_of(std::vector<std::string> fields) {
  if (fields.size() != 6) return {};
  Finished finished;
  // A function called `declare` may have said anything.
  if (fields[0].starts_with("builtin ()")) finished.state.own_builtin = std::move(fields[0]);
  finished.state.status = std::atoi(fields[1].c_str()) & 0xff;
  finished.state.is_traced = fields[2].find('x') != std::string::npos;
  if (fields[3].starts_with("trap ")) finished.state.debug_trap = std::move(fields[3]);
  if (fields[4].starts_with("trap ")) finished.state.error_trap = std::move(fields[4]);
  finished.exports = std::move(fields[5]);
  return finished;
}

std::string restore_script(const CommandText& text, const Begun& begun) {
  std::string script;
  if (!text.scoped_folder.empty()) {
    script += kBuiltin + "cd -- " + quoted(begun.folder) + kMayFail;
  }
  for (const auto& name : scoped_names(text)) script += unset_line(name);
  // bash's own words for what there was; a name that was not set has none.
  if (!begun.declared.empty()) script += kBuiltin + "eval " + quoted(begun.declared) + kMayFail;
  if (!script.empty()) script += "\n";
  return script;
}

wire::StringList changed_names(std::string_view before, std::string_view after,
                               const wire::StringList& ignored) {
  const Entries old_entries = parse_exports(before);
  const Entries new_entries = parse_exports(after);
  std::vector<std::string_view> names;
  const auto add_missing = [&](const Entries& from, const Entries& in) {
    for (const auto& entry : from) {
      if (!std::binary_search(in.begin(), in.end(), entry)) names.push_back(entry.first);
    }
  };
  add_missing(old_entries, new_entries);
  add_missing(new_entries, old_entries);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  wire::StringList changed;
  for (const auto name : names) {
    if (!has_name(ignored, name)) changed.add(name);
  }
  return changed;
}

}  // namespace contexts::shell
