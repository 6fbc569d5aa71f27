#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ctl {

/// Where copies of a context's files are made. Names come from there and are not to be trusted:
/// nothing is made outside the root, and no symlink below it is ever followed. All block.
class LocalTree {
 public:
  /// The folder `path`, which is there.
  static base::Result<LocalTree> open(const std::string& path);

  /// EINVAL: `name` leads out of the tree. One that is there will do.
  base::Result<void> make_folder(const std::string& name, mode_t mode);
  base::Result<void> make_link(const std::string& name, const std::string& target);
  base::Result<void> set_mode(const std::string& name, mode_t mode);

  /// A file that has its name once it is complete; else nothing of it stays.
  class File {
   public:
    File(base::UniqueFd folder, std::string name)
        : folder_(std::move(folder)), name_(std::move(name)) {}
    File(File&& other) noexcept;
    File& operator=(File&&) = delete;
    ~File();
    base::Result<void> create(mode_t mode);
    base::Result<void> write(std::string_view bytes);
    base::Result<void> publish();

   private:
    base::UniqueFd folder_;
    std::string name_;
    std::string draft_;
    base::UniqueFd file_;
  };
  base::Result<File> new_file(const std::string& name);

 private:
  struct Place {
    base::UniqueFd folder;
    std::string name;
  };
  explicit LocalTree(base::UniqueFd root) : root_(std::move(root)) {}
  base::Result<Place> place_of(const std::string& name) const;

  base::UniqueFd root_;
};

}  // namespace ctl
