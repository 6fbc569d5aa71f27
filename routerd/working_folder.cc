#include "routerd/working_folder.h"

#include <sys/stat.h>
#include <unistd.h>

namespace routerd {

base::Result<bool> make_working_folder(const contexts::ContextSpec& spec) {
  const char* folder = spec.cwd.c_str();
  if (::mkdir(folder, 0755) != 0) {
    if (errno == EEXIST) return false;
    return base::os_error("create the working directory " + spec.cwd + " of context '" + spec.name +
                          "'");
  }
  if (::chmod(folder, 0755) != 0) return base::os_error("chmod " + spec.cwd);  // whatever the umask
  return true;
}

base::Result<void> settle_working_folder(contexts::Context& context, bool is_new) {
  const auto user = context.own_ids();
  const std::string& folder = context.spec().cwd;
  if (!user) return {};
  if (is_new) {
    if (::chown(folder.c_str(), user->uid, user->gid) != 0)
      return base::os_error("chown " + folder);
    return {};
  }
  struct stat info {};
  if (context.tier() != contexts::Tier::uids || ::stat(folder.c_str(), &info) != 0) return {};
  const unsigned rights = info.st_uid == user->uid   ? info.st_mode >> 6
                          : info.st_gid == user->gid ? info.st_mode >> 3
                                                     : info.st_mode;
  if (user->uid != 0 && (rights & 3) != 3) {
    context.add_lack("its programs, uid " + std::to_string(user->uid) + ", cannot write in " +
                     folder + ": chown it, or name its owner by 'user'");
  }
  return {};
}

}  // namespace routerd
