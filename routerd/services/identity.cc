#include "routerd/services/identity.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "routerd/user.h"

namespace routerd::services {
namespace {

constexpr unsigned kFirstOwnUid = 61184;
constexpr unsigned kLastOwnUid = 65519;

/// FNV-1a.
std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::vector<std::uint32_t> groups_of(const passwd& user) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<std::size_t>(count));
    ::getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count);
  }
  groups.resize(static_cast<std::size_t>(count));
  return {groups.begin(), groups.end()};
}

base::Result<UserIds> ids_of(const ServiceSpec& spec, bool is_root) {
  if (!spec.user.empty()) return find_user(spec.user);
  if (!is_root) return UserIds{::geteuid(), ::getegid()};  // it has no other
  const unsigned uid = own_uid(spec.name);
  return UserIds{uid, uid};
}

}  // namespace

unsigned own_uid(const std::string& service) {
  constexpr unsigned kCount = kLastOwnUid - kFirstOwnUid + 1;
  for (unsigned offset = hash_of(service) % kCount;; offset = (offset + 1) % kCount) {
    if (::getpwuid(kFirstOwnUid + offset) == nullptr) return kFirstOwnUid + offset;
  }
}

base::Result<Identity> identify(const ServiceSpec& spec) {
  const bool is_root = ::geteuid() == 0;
  auto ids = ids_of(spec, is_root);
  if (!ids) {
    ids.error().operation = "service '" + spec.name + "': " + ids.error().operation;
    return tl::unexpected<base::Error>(ids.error());
  }
  if (!is_root && ids->uid != ::geteuid()) {
    return base::failure("service '" + spec.name + "': become user '" + spec.user + "'", EPERM,
                         "airlock runs without root here; leave 'user' out");
  }
  Identity identity{{ids->uid, ids->gid, {}}, spec.name, spec.cwd, "/bin/sh"};
  if (const passwd* entry = ::getpwuid(ids->uid)) {
    identity.user = entry->pw_name;
    identity.home = entry->pw_dir;
    if (*entry->pw_shell != '\0') identity.shell = entry->pw_shell;
    if (is_root) identity.credentials.groups = groups_of(*entry);
  }
  return identity;
}

}  // namespace routerd::services
