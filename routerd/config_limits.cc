#include "routerd/config_limits.h"

#include <charconv>
#include <cmath>

#include "routerd/config_quantity.h"

namespace routerd {
namespace {

using contexts::Limits;

constexpr std::uint64_t kMostPids = 4 << 20;  // PID_MAX_LIMIT of linux/threads.h
constexpr std::uint64_t kMostFiles = 1 << 30;
constexpr double kMostCpus = 10'000;

/// "1", "0.5": CPUs, to the hundredth.
std::optional<std::uint64_t> read_cpus(ConfigReader& reader, const Field& field) {
  constexpr std::string_view kExpected = "CPUs, from 0.01 to 10000, such as 0.5 or 2";
  auto text = reader.text(field, kExpected);
  if (!text) return std::nullopt;
  double cpus = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, cpus, std::chars_format::fixed);
  if (parsed.ec == std::errc() && parsed.ptr == end && cpus >= 0.01 && cpus <= kMostCpus) {
    return static_cast<std::uint64_t>(std::lround(cpus * 100));
  }
  reader.fail_expected(field, kExpected);
  return std::nullopt;
}

constexpr Key<Limits> kKeys[] = {
    {"pids",
     [](ConfigReader& reader, const Field& field, Limits& limits) {
       set(limits.pids, reader.number(field, contexts::kLeastPids, kMostPids));
     }},
    {"memory",
     [](ConfigReader& reader, const Field& field, Limits& limits) {
       set(limits.memory, read_size(reader, field, contexts::kLeastMemory));
     }},
    {"cpu", [](ConfigReader& reader, const Field& field,
               Limits& limits) { set(limits.cpu_hundredths, read_cpus(reader, field)); }},
    {"open_files",
     [](ConfigReader& reader, const Field& field, Limits& limits) {
       set(limits.open_files, reader.number(field, contexts::kLeastOpenFiles, kMostFiles));
     }},
    {"tmpfs",
     [](ConfigReader& reader, const Field& field, Limits& limits) {
       set(limits.tmpfs, read_size(reader, field, contexts::kLeastTmpfs));
     }},
    {"exec_time",
     [](ConfigReader& reader, const Field& field, Limits& limits) {
       const auto longest = read_duration(reader, field);
       if (longest) limits.exec_time_ms = static_cast<std::uint64_t>(longest->count());
     }},
};

}  // namespace

void read_limits(ConfigReader& reader, const Field& field, Limits& limits) {
  read_map<Limits>(reader, field, kKeys, limits);
}

}  // namespace routerd
