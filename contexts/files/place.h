#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "contexts/files/outcome.h"

namespace contexts::files {

/// A name in a folder, whatever is there.
struct Place {
  base::UniqueFd folder;  ///< O_PATH
  std::string name;
};

/// The place that `path` names; a symlink there is not followed. EINVAL: it ends in "." or "..", or
/// is "/".
Outcome<Place> place_of(const std::string& path);

/// Where a program that opens `path` for writing would make the file: symlinks are followed.
/// EISDIR: it names a folder by how it is written.
Outcome<Place> place_to_write(std::string path);

/// What is there, symlinks not followed; nothing if there is nothing.
Outcome<std::optional<struct stat>> look(const Place& place);

/// Makes the folders above `path` that are missing.
Outcome<void> make_folders_above(const std::string& path);

/// The last part of a path.
std::string last_part(std::string path);

/// What clients are told of `name` in `folder`, which has these attributes.
wire::FileEntry entry_of(int folder, const std::string& name, const struct stat& info);

/// Of what was not asked for: EISDIR for a folder, else "not a file".
tl::unexpected<wire::FileFailed> no_file(const struct stat& info);

/// Opens a regular file to be read; nothing else is ever opened for that, so nothing waits.
/// EISDIR, not_a_file.
Outcome<base::UniqueFd> open_to_read(const std::string& path);

/// The tag of what is at `place` if that is a file; else empty.
std::string tag_at(const Place& place, const std::optional<struct stat>& info);

/// The conditions of `request`, for what is at `place` now.
Outcome<void> check_conditions(const wire::FileRequest& request, const Place& place);

/// While it lives no other of these programs changes files of the folder under conditions.
/// EBUSY after a few seconds; a folder that cannot be read is not locked.
Outcome<base::UniqueFd> lock_folder(const Place& place);

}  // namespace contexts::files
