#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/exec.h"

namespace api {

class Attachment;

/// Those who are attached to one exec; or to one terminal, whose exec may be replaced. At most one
/// of them writes.
class Audience : public std::enable_shared_from_this<Audience> {
 public:
  /// `id`: of the terminal, or of the exec. `idle_ms`: when nobody has been attached for so long it
  /// is hung up; 0: never.
  Audience(boost::asio::io_context& io, std::string id, std::shared_ptr<Exec> exec,
           std::uint64_t idle_ms);

  const std::string& id() const { return id_; }
  const std::shared_ptr<Exec>& exec() const { return exec_; }
  bool has_writer() const { return !writer_.expired(); }
  bool is_empty() const { return attached_.empty(); }
  bool is_full() const { return attached_.size() >= kMostAttached; }
  static constexpr std::size_t kMostAttached = 32;

  /// From now on it counts how long nobody is attached.
  void arm_idle();
  /// A writer takes over from the one there is.
  void join(const std::shared_ptr<Attachment>& attachment);
  void leave(const Attachment* attachment);
  /// All follow `exec` from now on.
  void replace(std::shared_ptr<Exec> exec);
  /// SIGHUP, as the end of a terminal's line; what does not end by that is killed 5 s later.
  void hang_up();

  /// "starting", "detached", "attached" or "ended"; who is there, and how much time is left.
  nlohmann::json state() const;

 private:
  void tell_all();

  std::string id_;
  std::shared_ptr<Exec> exec_;
  std::uint64_t idle_ms_;
  std::vector<std::weak_ptr<Attachment>> attached_;
  std::weak_ptr<Attachment> writer_;
  boost::asio::steady_timer idle_;
};

}  // namespace api
