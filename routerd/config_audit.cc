#include "routerd/config_audit.h"

#include "routerd/config_quantity.h"

namespace routerd {
namespace {

constexpr std::uint64_t kSmallestFile = 64 << 10;
constexpr std::uint64_t kMostFiles = 1000;

constexpr Choice<bool> kArgv[] = {{"redacted", false}, {"full", true}};

constexpr Key<audit::Options> kKeys[] = {
    {"folder",
     [](ConfigReader& reader, const Field& field, audit::Options& options) {
       set(options.folder, reader.path(field, "an absolute path without '.' and '..'"));
       if (options.folder == "/") reader.fail(field, "expected a folder of its own, found '/'");
     }},
    {"argv", [](ConfigReader& reader, const Field& field,
                audit::Options& options) { set(options.with_argv, reader.choice(field, kArgv)); }},
    {"max_size",
     [](ConfigReader& reader, const Field& field, audit::Options& options) {
       set(options.max_bytes, read_size(reader, field, kSmallestFile));
     }},
    {"keep",
     [](ConfigReader& reader, const Field& field, audit::Options& options) {
       const auto keep = reader.number(field, 0, kMostFiles);
       if (keep) options.keep = static_cast<unsigned>(*keep);
     }},
};

}  // namespace

void read_audit(ConfigReader& reader, const Field& field, Config& config) {
  read_map<audit::Options>(reader, field, kKeys, config.audit);
  if (config.audit.folder.empty()) {
    reader.fail(field.key, "'audit': expected 'folder' in it, found none");
  }
}

}  // namespace routerd
