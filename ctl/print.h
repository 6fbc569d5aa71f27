#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ctl {

/// Rows as aligned columns on stdout; the first row is the heading.
void print_table(const std::vector<std::vector<std::string>>& rows);

void print_json(const nlohmann::json& value);

/// Bytes of a name or path that are safe on a terminal: control characters become '?'.
std::string printable(const std::string& text);

/// "2 ms", "35 s", "4 min".
std::string duration_text(std::uint64_t milliseconds);

}  // namespace ctl
