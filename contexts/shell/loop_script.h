#pragma once

// What a plain bash is told to do for a command, as text, and what it says to that. Pure.
//
// bash reads the script from a socket, its standard input, and writes what it says into the same
// socket: a script ends with what bash says last, and no byte of the next one is there before that.
// Bytes that are not ours are in the script only as quoted().

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contexts/shell/report.h"

namespace contexts::shell {

/// A word of bash that stands for just these bytes, whatever the locale: printable ASCII on one
/// line. `bytes` has no NUL.
std::string quoted(std::string_view bytes);

/// What bash takes for the name of a variable.
bool is_shell_name(std::string_view name);

/// Of a command, for the next one. Both as bash has put them.
struct LoopState {
  int status = 0;           ///< $?
  bool is_traced = false;   ///< set -x
  std::string error_trap;   ///< "trap -- … ERR", or empty
  std::string debug_trap;   ///< "trap -- … DEBUG", or empty
  std::string own_builtin;  ///< the user's function that is called `builtin`, or empty
};

/// What a fresh bash does first. It says nothing but `nonce`. `preload`: LD_PRELOAD for programs,
/// empty: none.
std::string first_script(std::string_view nonce, std::string_view preload);

/// bash says nothing but `nonce`: it is there.
std::string empty_script(std::string_view nonce);

/// Runs a command. bash says Begun, `nonce` after it, runs the command and says Finished, `nonce`.
std::string command_script(std::string_view nonce, const CommandText& text, const LoopState& last);

/// Before the command, and before what is for this command alone.
struct Begun {
  std::string folder;    ///< $PWD
  std::string exports;   ///< `export -p`
  std::string declared;  ///< `declare -p` of what the command has otherwise
};
struct Finished {
  LoopState state;
  std::string exports;
};

/// Takes what bash says up to `nonce` out of `heard`; nothing if it has not come whole. What
/// belongs to no field is left out.
std::optional<std::vector<std::string>> take_fields(std::string& heard, std::string_view nonce);
std::optional<Begun> begun_of(std::vector<std::string> fields);
std::optional<Finished> finished_of(std::vector<std::string> fields);

/// Undoes what was for the command alone. Empty if nothing was.
std::string restore_script(const CommandText& text, const Begun& begun);

/// Names that one of two `export -p` has and the other has not, or has with another value; without
/// `ignored` (NAME=VALUE).
wire::StringList changed_names(std::string_view before, std::string_view after,
                               const wire::StringList& ignored);

}  // namespace contexts::shell
