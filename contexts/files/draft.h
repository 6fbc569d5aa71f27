#pragma once

#include <string>

#include "contexts/files/place.h"

namespace contexts::files {

/// A file that is being written and that nobody finds before it is complete. One that is not
/// published leaves nothing behind: where the file system can, it has no name before.
class Draft {
 public:
  /// In the folder of `place`.
  static Outcome<Draft> make(const Place& place);

  Draft(Draft&& other) noexcept;
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  int file() const { return file_.borrow(); }
  /// Gives it the place's name, at once: whoever opens that finds the old file or this one. EEXIST:
  /// there is something, and `replaces` is false.
  Outcome<void> publish(const Place& place, bool replaces);

 private:
  Draft(int folder, base::UniqueFd file, std::string name)
      : folder_(folder), file_(std::move(file)), name_(std::move(name)) {}
  Outcome<void> link_as(const std::string& name) const;

  int folder_;  ///< of the place, which outlives this
  base::UniqueFd file_;
  std::string name_;  ///< empty: it has none
};

/// renameat2(2) without replacing; where the file system cannot, as near to that as it gets.
Outcome<void> rename_to_free_name(const Place& from, const Place& to);

}  // namespace contexts::files
