#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "routerd/api_config.h"

namespace routerd {

/// What the API's program is told by the daemon, because it may not read it itself: the text of its
/// tokens file, read anew whenever that changes, and what the configuration says.
class ApiSettings {
 public:
  ApiSettings(boost::asio::io_context& io, ApiConfig config);

  /// {tokens: TEXT, hosts: […], origins: […], port}. Without a readable file TEXT is empty.
  nlohmann::json current() const;

  /// Reads the tokens file; one that others than its owner may write is not used.
  void reload();

  /// `follower` is called after each change.
  std::uint64_t follow(std::function<void()> follower);
  void unfollow(std::uint64_t number) { followers_.erase(number); }

 private:
  void watch();
  void await_change();

  ApiConfig config_;
  std::string tokens_;
  /// inotify(7) of the tokens file's folder; not open where there is none.
  boost::asio::posix::stream_descriptor changes_;
  std::map<std::uint64_t, std::function<void()>> followers_;
  std::uint64_t next_follower_ = 1;
};

}  // namespace routerd
