// Async-signal-safe: runs in a vfork child. No allocation, no locks, no stdio.
#include "preload/resolve.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

namespace preload {
namespace {

/// glibc's CS_PATH.
constexpr char kDefaultPath[] = "/bin:/usr/bin";

size_t element_length(const char* element) {
  const char* colon = strchr(element, ':');
  return colon != nullptr ? static_cast<size_t>(colon - element) : strlen(element);
}

}  // namespace

const char* search_path() {
  if (environ == nullptr) return kDefaultPath;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, "PATH=", 5) == 0) return *entry + 5;
  }
  return kDefaultPath;
}

Candidate next_candidate(PathSearch& search, const char* name, char (&out)[PATH_MAX]) {
  while (search.rest != nullptr) {
    const char* element = search.rest;
    const size_t length = element_length(element);
    search.rest = element[length] == ':' ? element + length + 1 : nullptr;
    if (search.absolute_only && element[0] != '/') continue;

    const size_t name_length = strlen(name);
    if (length + 1 + name_length >= sizeof(out)) return Candidate::too_long;
    memcpy(out, element, length);
    char* end = out + length;
    if (length > 0) *end++ = '/';
    memcpy(end, name, name_length + 1);
    return Candidate::found;
  }
  return Candidate::none_left;
}

bool search_goes_on(int error) {
  switch (error) {
    case EACCES:
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
    case ENODEV:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace preload
