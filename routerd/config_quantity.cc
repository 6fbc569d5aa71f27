#include "routerd/config_quantity.h"

#include <charconv>

namespace routerd {

using std::string_view;
using std::chrono::milliseconds;

namespace {

struct Unit {
  string_view name;
  std::uint64_t factor;
};

std::optional<std::uint64_t> read_quantity(ConfigReader& reader, const Field& field,
                                           std::span<const Unit> units, string_view expected) {
  constexpr std::uint64_t kLargest = 1'000'000'000;  // of any unit: no product overflows
  auto text = reader.text(field, expected);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  const auto unit = std::ranges::find(units, string_view(parsed.ptr, end), &Unit::name);
  if (parsed.ec == std::errc() && number <= kLargest && unit != units.end()) {
    return number * unit->factor;
  }
  reader.fail_expected(field, expected);
  return std::nullopt;
}

}  // namespace

std::optional<milliseconds> read_duration(ConfigReader& reader, const Field& field) {
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  const auto ms = read_quantity(reader, field, kUnits, "a duration such as 500ms, 10s or 2m");
  return ms ? std::optional(milliseconds(*ms)) : std::nullopt;
}

std::optional<std::uint64_t> read_size(ConfigReader& reader, const Field& field,
                                       std::uint64_t least) {
  constexpr Unit kUnits[] = {{"", 1}, {"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30}};
  const auto size = read_quantity(reader, field, kUnits, "a size such as 512K or 10M");
  if (!size || *size >= least) return size;
  reader.fail_expected(field, "at least " + std::to_string(least >> 10) + "K");
  return std::nullopt;
}

}  // namespace routerd
