#include "routerd/job_store.h"

#include "wire/limits.h"

namespace routerd {

base::Result<void> JobStore::add(const std::string& key, Kept kept) {
  if (key.empty() || key.size() > wire::kMaxKeptKey) {
    return base::failure("keep a job", EINVAL, "its key is empty or too long");
  }
  if (kept.note.size() > wire::kMaxKeptNote) return base::failure("keep a job's note", EMSGSIZE);
  if (kept.streams.count() != kept.fds.size() || kept.fds.size() > kMaxStreams) {
    return base::failure("keep a job", EBADMSG, "descriptors do not match their names");
  }
  if (jobs_.contains(key)) return base::failure("keep a job", EEXIST);
  if (jobs_.size() >= wire::kMaxKeptJobs) {
    return base::failure("keep a job", ENOSPC, "too many are kept");
  }
  jobs_.emplace(key, std::move(kept));
  return {};
}

base::Result<void> JobStore::update(const std::string& key, Kept news) {
  if (news.note.size() > wire::kMaxKeptNote) return base::failure("keep a job's note", EMSGSIZE);
  if (news.streams.count() != news.fds.size()) return base::failure("keep a job's note", EBADMSG);
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return base::failure("keep a job's note", ENOENT);
  Kept& kept = found->second;
  if (kept.fds.size() + news.fds.size() > kMaxStreams) {
    return base::failure("keep a job's streams", EMSGSIZE);
  }
  kept.note = std::move(news.note);
  for (const auto stream : news.streams.views()) kept.streams.add(stream);
  for (auto& fd : news.fds) kept.fds.push_back(std::move(fd));
  return {};
}

void JobStore::release_stream(const std::string& key, std::string_view stream) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  Kept& kept = found->second;
  const auto names = kept.streams.views();
  wire::StringList left;
  std::vector<base::UniqueFd> fds;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == stream) continue;
    left.add(names[i]);
    fds.push_back(std::move(kept.fds[i]));
  }
  kept.streams = std::move(left);
  kept.fds = std::move(fds);
}

const JobStore::Kept* JobStore::find(const std::string& key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

}  // namespace routerd
