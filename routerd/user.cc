#include "routerd/user.h"

#include <pwd.h>

#include <charconv>

namespace routerd {

base::Result<UserIds> find_user(const std::string& text) {
  uid_t uid = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, uid);
  const bool is_number =
      parsed.ec == std::errc() && parsed.ptr == end && uid != static_cast<uid_t>(-1);
  const passwd* entry = is_number ? ::getpwuid(uid) : ::getpwnam(text.c_str());
  if (entry != nullptr) return UserIds{entry->pw_uid, entry->pw_gid};
  if (is_number) return UserIds{uid, uid};
  return base::failure("user '" + text + "'", ENOENT, "expected a name of passwd(5) or a uid");
}

}  // namespace routerd
