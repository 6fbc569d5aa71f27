#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "contexts/system_folders.h"

namespace contexts {

/// The folder there, or none. What the context makes there, symlinks above all, leads nowhere else
/// (openat2(2), RESOLVE_BENEATH).
base::UniqueFd open_layer(const UpperPath& place);

/// A shim farm: a tmpfs with one copy of the stub and, per covered folder, a folder in which every
/// program of the real one is a hard link to that copy. Bound over the real folders in an agent's
/// mount namespace, it makes every exec there an exec of the stub, which knows by AT_EXECFN what
/// was called. Hard links: a symlink would show as the stub in realpath(3), and a file that is
/// mounted over can be renamed away.
///
/// The tmpfs is its context's; programs there see it read-only.
class Farm {
 public:
  /// `root`: of the tmpfs, writable. Puts a copy of `stub` there that knows it serves the programs
  /// of `airlock_folder` (at most wire::kMaxStubFolder bytes). Blocking, a few ms.
  static base::Result<Farm> create(base::UniqueFd root, const std::string& stub,
                                   const std::string& airlock_folder);

  /// Covers `folder`, a resolved path: as many links as it has programs. What is covered already is
  /// left as it is. Gives the name of the folder of shims. Blocking, about 5 us per program.
  base::Result<std::string> cover(const std::string& folder);

  /// Makes the shims of a covered folder those of its programs now: all, or the one called `name`.
  void refresh(const std::string& folder);
  void refresh(const std::string& folder, const std::string& name);
  /// All that is in the folder's layer, which had none before.
  void refresh_layer(const std::string& folder);

  /// `more`: a folder whose programs count as if they were in the covered `folder`, too, from the
  /// next refresh on, whether it is there already or not. Symlinks there count as programs: they
  /// lead somewhere only in the context whose upper layer this is.
  void set_layer(const std::string& folder, std::optional<UpperPath> more);

  /// From now on `name` in a covered folder shows as the symlink it really is.
  void keep_link(const std::string& folder, const std::string& name);

  bool is_kept_link(const std::string& path) const { return kept_links_.contains(path); }

  /// The shared copy of the stub, in this process's view.
  std::string stub_path() const;
  /// Covered folders and the names of their shims' folders.
  const std::map<std::string, std::string>& covered() const { return covered_; }

 private:
  explicit Farm(base::UniqueFd root) : root_(std::move(root)) {}
  /// What a covered folder's shims are made from, and where they are.
  struct Sources {
    base::UniqueFd shims, real, layer;
  };
  Sources open_sources(const std::string& folder) const;
  void link_all(const Sources& sources, const std::string& folder, int names);
  void link_one(const Sources& sources, const std::string& folder, const char* name);

  base::UniqueFd root_;
  std::map<std::string, std::string> covered_;
  std::map<std::string, UpperPath> layers_;
  std::set<std::string> kept_links_;
};

}  // namespace contexts
