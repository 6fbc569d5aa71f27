#include "ctl/limits.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "ctl/commands.h"

namespace ctl {
namespace {

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number == 0) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> size(const std::string& text) {
  constexpr std::string_view kUnits = "KMG";
  const auto unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const auto number = whole_number(unit == kUnits.npos ? text : text.substr(0, text.size() - 1));
  const unsigned shift = unit == kUnits.npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  if (!number || *number > UINT64_MAX >> shift) return std::nullopt;
  return *number << shift;
}

std::optional<std::uint64_t> hundredths(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != end || number < 0.01 || number > 10'000) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(std::lround(number * 100));
}

std::optional<std::uint64_t> duration(const std::string& text) {
  const auto ms = parse_duration(text);
  return ms == 0 ? std::nullopt : std::optional(ms);
}

struct Limit {
  std::string_view name;
  const char* field;
  const char* expected;
  std::optional<std::uint64_t> (*parse)(const std::string&);
};

constexpr Limit kLimits[] = {{"pids", "pids", "a number", whole_number},
                             {"memory", "memory", "a size such as 512M or 2G", size},
                             {"cpu", "cpuHundredths", "CPUs, such as 0.5 or 2", hundredths},
                             {"open_files", "openFiles", "a number", whole_number},
                             {"tmpfs", "tmpfs", "a size such as 64M", size},
                             {"exec_time", "execTimeMs", "a duration such as 10s or 5m", duration}};

}  // namespace

tl::expected<nlohmann::json, std::string> limits_object(const std::vector<std::string>& words) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const Limit* known = nullptr;
    for (const auto& limit : kLimits) {
      if (equals != word.npos && word.compare(0, equals, limit.name) == 0) known = &limit;
    }
    if (known == nullptr) {
      return tl::unexpected("limit '" + word +
                            "': expected pids, memory, cpu, open_files, tmpfs or exec_time, '=' "
                            "and a value");
    }
    const auto value = known->parse(word.substr(equals + 1));
    if (!value) return tl::unexpected("limit '" + word + "': expected " + known->expected);
    object[known->field] = *value;
  }
  return object;
}

}  // namespace ctl
