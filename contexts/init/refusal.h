#pragma once

#include <array>
#include <string>
#include <string_view>

#include "contexts/init/spawn.h"
#include "wire/message.h"

namespace contexts::init {

/// Why a program was not started, in pieces: made by a child too, which may not allocate.
class Refusal {
 public:
  /// `request` must outlive this.
  Refusal(const wire::ExecRequest& request, SpawnStep step, int error);

  /// "airlock: …\n" to `fd`, whole or not at all. Async-signal-safe, without errno; blocks while a
  /// pipe is full.
  bool write_line(int fd) const;
  wire::NotStarted message(bool is_told) const;

 private:
  void add(std::string_view piece) { pieces_[count_++] = piece; }
  void add_number(std::uint32_t number);

  int exit_code_;
  int error_;
  std::array<std::string_view, 6> pieces_;
  std::size_t count_ = 0;
  char digits_[12];
};

}  // namespace contexts::init
