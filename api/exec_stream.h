#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/event_stream.h"
#include "api/exec.h"

namespace api {

/// How far a client has read: "o12.e3" is 12 bytes of stdout and 3 of stderr.
using Cursor = std::array<std::uint64_t, Exec::kStreams>;
std::string cursor_text(const Cursor& cursor);
std::optional<Cursor> parse_cursor(std::string_view text);

/// One output event's fields: {"text": …} if `bytes` is UTF-8 or is to be taken as it, else
/// {"base64": …}. Pure.
std::string output_fields(std::string_view bytes, Encoding encoding);

/// Sends the output of an exec from a cursor on, as it comes, and then its end.
struct ExecStreamOptions {
  Cursor from{};
  Encoding encoding = Encoding::automatic;
  /// The program waits for this client, instead of this client missing some.
  bool is_waited_for = false;
  /// SIGKILL it when this client goes away.
  bool kills = false;
};
void stream_exec(const std::shared_ptr<EventStream>& stream, const std::shared_ptr<Exec>& exec,
                 const ExecStreamOptions& options);

}  // namespace api
