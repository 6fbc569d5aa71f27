#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "contexts/shell/report.h"

namespace contexts::shell {

/// What the context has changed and the shell does not know yet.
class Pending {
 public:
  /// Later changes of a name win.
  void add(const wire::ShellUpdate& update) {
    for (const auto entry : update.set.views()) add(entry.substr(0, entry.find('=')), entry);
    for (const auto name : update.unset.views()) add(name, {});
    if (!update.cwd.empty()) folder_ = update.cwd;
  }
  /// What is older than this and has not been taken after all.
  void add_older(const Pending& older) {
    for (const auto& change : older.changes_) {
      if (find(change.name) == changes_.end()) changes_.push_back(change);
    }
    if (folder_.empty()) folder_ = older.folder_;
  }

  const std::string& folder() const { return folder_; }
  CommandText text() const {
    CommandText text;
    for (const auto& change : changes_) {
      change.entry.empty() ? text.unset.add(change.name) : text.set.add(change.entry);
    }
    text.folder = folder_;
    return text;
  }

 private:
  struct Change {
    std::string name;
    std::string entry;  ///< NAME=VALUE; empty: unset
  };

  std::vector<Change>::iterator find(std::string_view name) {
    return std::find_if(changes_.begin(), changes_.end(),
                        [name](const Change& change) { return change.name == name; });
  }
  void add(std::string_view name, std::string_view entry) {
    const auto known = find(name);
    if (known == changes_.end()) {
      changes_.push_back({std::string(name), std::string(entry)});
    } else {
      known->entry = entry;
    }
  }

  std::vector<Change> changes_;
  std::string folder_;
};

}  // namespace contexts::shell
