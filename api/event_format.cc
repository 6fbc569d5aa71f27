#include "api/event_format.h"

#include "api/text.h"

namespace api {

bool accepts(std::string_view accept, std::string_view media) {
  while (!accept.empty()) {
    const auto end = std::min(accept.find(','), accept.size());
    auto entry = accept.substr(0, std::min(accept.find(';'), end));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == media) return true;
    accept.remove_prefix(std::min(end + 1, accept.size()));
  }
  return false;
}

std::optional<EventFormat> stream_format(const Request& request) {
  for (const auto format : {EventFormat::sse, EventFormat::ndjson}) {
    if (accepts(request.header("accept"), media_type(format))) return format;
  }
  return std::nullopt;
}

const char* media_type(EventFormat format) {
  return format == EventFormat::sse ? "text/event-stream" : "application/x-ndjson";
}

void append_event(std::string& target, EventFormat format, std::string_view type,
                  std::string_view fields, std::string_view cursor) {
  if (format == EventFormat::sse) {
    if (!cursor.empty()) target.append("id: ").append(cursor).append("\n");
    target.append("event: ").append(type).append("\ndata: ").append(fields).append("\n\n");
    return;
  }
  target.append("{\"type\":");
  append_json_string(target, type);
  if (!cursor.empty()) {
    target.append(",\"cursor\":");
    append_json_string(target, cursor);
  }
  if (fields.size() > 2) target.append(",").append(fields.substr(1, fields.size() - 2));
  target.append("}\n");
}

void append_ping(std::string& target, EventFormat format) {
  target += format == EventFormat::sse ? ": ping\n\n" : "{\"type\":\"ping\"}\n";
}

}  // namespace api
