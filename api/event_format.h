#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http.h"

// Events of a stream as text: Server-Sent Events (WHATWG HTML, 9.2) or one JSON object per line.
// Pure.
namespace api {

enum class EventFormat { sse, ndjson };

/// The format a request's Accept asks for, if it asks for a stream.
std::optional<EventFormat> stream_format(const Request& request);

const char* media_type(EventFormat format);

/// Adds an event. `fields` is a JSON object; `cursor` may be empty.
void append_event(std::string& target, EventFormat format, std::string_view type,
                  std::string_view fields, std::string_view cursor);

/// Adds what keeps a connection from looking idle.
void append_ping(std::string& target, EventFormat format);

/// Whether an Accept header admits a media type such as "text/event-stream".
bool accepts(std::string_view accept, std::string_view media);

}  // namespace api
