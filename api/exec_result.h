#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/exec_order.h"
#include "wire/message.h"

namespace api {

/// What there is to tell about an exec, without its output. Pure data.
struct ExecFacts {
  std::string id;
  std::string context;
  std::string command;            ///< the first kMostShown bytes of it
  std::vector<std::string> argv;  ///< as many words as fit there
  std::string shell;
  std::string once_name;  ///< ExecOrder
  std::string once_hash;
  bool has_terminal = false;
  std::uint64_t max_bytes = 0;
  std::int64_t started_ms = 0;  ///< since 1970
  std::int64_t ended_ms = 0;    ///< 0: not yet
  std::int64_t begun_ms = 0;    ///< 0: not started yet
  int pid = 0;                  ///< in its context; 0: not started yet
  std::uint64_t job = 0;        ///< the daemon's number; 0: not known yet
  bool is_queued = false;       ///< waits for other commands of its shell
  std::optional<wire::Exited> exited;
  std::optional<wire::NotStarted> not_started;
  bool is_lost = false;  ///< ended, and nobody knows how
  /// Id of the terminal it runs in, and what that was ordered by (JSON); empty: of none.
  std::string terminal;
  std::string terminal_order;

  bool has_ended() const { return exited || not_started || is_lost; }
};

constexpr std::size_t kMostShown = 4096;

/// The facts of an exec that has just been ordered.
ExecFacts facts_of(const ExecOrder& order, std::string id, std::string context,
                   std::int64_t now_ms);

/// As the daemon keeps them, for an API that is started after this one. Pure; nothing: not ours.
std::string to_note(const ExecFacts& facts);
std::optional<ExecFacts> read_note(const std::string& note);

/// Kept output of one stream: bytes [0, gap_at) and what is behind the gap.
struct Capture {
  std::string bytes;
  std::uint64_t total = 0;    ///< how many came
  std::size_t gap_at = 0;     ///< into `bytes`
  std::uint64_t omitted = 0;  ///< bytes left out there
};

/// As a shell tells it: its exit code, or 128 + the signal's number; 126 or 127 if it was not
/// started. Nothing: it runs, or nobody knows.
std::optional<int> exit_status(const ExecFacts& facts);
/// "queued", "running", "exited", "signaled", "timed_out", "failed" or "lost".
const char* status_of(const ExecFacts& facts);
/// What a client is told (docs/API.md). `now_ms` counts for one that still runs.
nlohmann::json to_json(const ExecFacts& facts, std::int64_t now_ms);
/// Adds stdout… or stderr… to that.
void add_capture(nlohmann::json& result, const std::string& stream, Capture capture,
                 Encoding encoding);

/// "2026-01-31T12:00:00.000Z".
std::string to_time(std::int64_t ms);

}  // namespace api
