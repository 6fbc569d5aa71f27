#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "wire/message.h"

namespace api {

/// How output becomes text in an answer.
enum class Encoding { automatic, utf8, base64 };

/// Who asks for a program, by which request: fields of the verb api.exec (docs/PROTOCOL.md, 10).
/// Empty: the daemon keeps no audit log.
using AskedBy = std::map<std::string, std::string>;

/// What a client wants to be run. Pure data.
struct ExecOrder {
  /// As it was asked for, one of them: text for a shell, or words.
  std::string command;
  std::vector<std::string> argv;
  /// The persistent shell that runs `command`; empty: a new one.
  std::string shell;

  std::vector<std::string> env;  ///< NAME=VALUE, for this exec only
  std::string cwd;               ///< empty: the context's, or the shell's

  enum class Stdin { none, bytes, open };
  Stdin stdin_kind = Stdin::none;
  std::string stdin_bytes;
  std::optional<wire::Winsize> terminal;

  std::uint64_t timeout_ms = 0;  ///< 0: none. Then SIGTERM, and SIGKILL after grace_ms
  std::uint64_t grace_ms = 5000;
  std::optional<std::uint64_t> yield_ms;  ///< answer "running" after this

  std::uint64_t max_bytes = 1u << 20;  ///< kept of each stream: half of it its head, half its tail
  /// Of the request's Idempotency-Key and body (Idempotency); empty: without.
  std::string once_name;
  std::string once_hash;

  Encoding encoding = Encoding::automatic;
  /// Nothing was said about shells: a persistent context runs `command` in its shell `default`.
  bool takes_default_shell = false;
  bool fail_if_busy = false;  ///< the shell
  bool kill_on_disconnect = true;
  /// A streaming client that does not read stops the program, as a pipe would; else it misses some.
  bool waits_for_reader = true;

  /// Of an exec in a terminal (api/terminals.h): what ExecFacts has of it.
  std::string terminal_id;
  std::string terminal_order;

  AskedBy asked_by;
};

constexpr std::uint64_t kMostOutput = 64u << 20;

/// As persistent shells are called.
bool is_shell_name(const std::string& name);

/// Reads the body of an exec request; pure. `new_shell` runs `command` where no persistent shell
/// does: "bash", say.
Checked<ExecOrder> read_exec_order(const nlohmann::json& body);

/// What a client wants to be run in a terminal that it will attach to. Pure data.
struct TerminalOrder {
  ExecOrder exec;
  /// When nobody has been attached for so long it is hung up; 0: never.
  std::uint64_t idle_ms = 30 * 60 * 1000;
};

/// Reads the body of a terminal request; pure. `new_shell` runs where no program is named.
Checked<TerminalOrder> read_terminal_order(const nlohmann::json& body,
                                           const std::string& new_shell);

/// The request for the daemon, without descriptors.
wire::ExecRequest to_request(const ExecOrder& order, const std::string& context,
                             const std::string& new_shell);

}  // namespace api
