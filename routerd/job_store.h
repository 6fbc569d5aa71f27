#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "wire/string_list.h"

namespace routerd {

/// What a kept job leaves with the daemon, as systemd's fd store does it: copies of its socket, of
/// its pipes and of the files its output is in, and a note. The daemon never reads from any of it.
/// As long as they are here the job has a requester, and goes on.
class JobStore {
 public:
  struct Kept {
    std::string note;
    /// What each descriptor is; as many as `fds`.
    wire::StringList streams;
    std::vector<base::UniqueFd> fds;
  };

  /// EEXIST: the key is used; ENOSPC: wire::kMaxKeptJobs are kept; EINVAL, EMSGSIZE: a key or note
  /// beyond its limits; EBADMSG: not as many descriptors as streams.
  base::Result<void> add(const std::string& key, Kept kept);
  /// Replaces the note and adds the streams. ENOENT; EMSGSIZE: the note, or more than
  /// kMaxStreams; EBADMSG as for add().
  base::Result<void> update(const std::string& key, Kept news);
  static constexpr std::size_t kMaxStreams = 16;
  /// Null if there is none.
  const Kept* find(const std::string& key) const;
  /// Closes the copies; a job nobody else has a copy of ends. False if there was none.
  bool release(const std::string& key) { return jobs_.erase(key) > 0; }
  /// The same for what one name stands for.
  void release_stream(const std::string& key, std::string_view stream);
  const std::map<std::string, Kept, std::less<>>& jobs() const { return jobs_; }

 private:
  std::map<std::string, Kept, std::less<>> jobs_;
};

}  // namespace routerd
