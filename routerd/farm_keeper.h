#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "contexts/farm.h"

namespace routerd {

/// A context's shim farm, kept as the real folders are: what is installed or removed while agents
/// run gets or loses its shim (inotify(7)), a moment later.
class FarmKeeper {
 public:
  /// `io` must outlive this object.
  static base::Result<std::unique_ptr<FarmKeeper>> create(boost::asio::io_context& io,
                                                          contexts::Farm farm);

  /// As Farm::cover, and watches the folder from now on. Where it cannot be watched (ENOSPC:
  /// fs.inotify.max_user_watches), it is covered all the same and brought up to date at each
  /// launch.
  base::Result<std::string> cover(const std::string& folder);

  /// Programs in the upper layers below `upper` have shims, too, and those of another folder have
  /// none any more: what the agents' children have installed for themselves
  /// (contexts/system_folders.h). Empty: nobody's. `upper` must have the folders by now.
  void follow(const std::string& upper);

  contexts::Farm& farm() { return farm_; }

 private:
  FarmKeeper(boost::asio::io_context& io, contexts::Farm farm, int inotify);
  bool is_watched(const std::string& path) const;
  /// `opened` leads to what is called `path`.
  void watch(const std::string& opened, const std::string& path, const std::string& folder);
  void unwatch(const std::string& path);
  /// Whether the folder's layer is watched from now on.
  bool follow_in(const std::string& folder);
  void wait();
  void take_events();
  void take(int number, unsigned mask, const std::string& name);

  contexts::Farm farm_;
  boost::asio::posix::stream_descriptor inotify_;
  /// What is watched, and the covered folder it is watched for.
  struct Watched {
    std::string path, folder;
  };
  std::map<int, Watched> watched_;
  std::string upper_;
};

}  // namespace routerd
