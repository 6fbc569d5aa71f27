#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace api {

/// What a program has written to one stream: in a file in memory whose position is the cursor, so
/// that whoever has the file knows how much came. Beyond its limit only the head and the tail are
/// kept; what is between is a hole, and no offset changes.
class OutputLog {
 public:
  /// Of a stream that has no bytes yet. `keeps` bytes are kept at least, some more for a moment.
  static base::Result<OutputLog> create(std::uint64_t keeps);
  /// Of a file that an earlier process has made by create().
  static base::Result<OutputLog> adopt(base::UniqueFd file, std::uint64_t keeps);

  /// Moves at most `most` bytes from `source`, a pipe or a terminal, which must not block. 0: there
  /// are none for now. EPIPE: it has ended.
  base::Result<std::size_t> fill(int source, std::size_t most);
  /// For tests and notes of our own.
  base::Result<void> append(std::string_view bytes);

  /// How many bytes have come, ever.
  std::uint64_t end() const { return end_; }
  /// [hole_begin, hole_end) is not kept; empty if everything is.
  std::uint64_t hole_begin() const { return hole_begin_; }
  std::uint64_t hole_end() const { return hole_end_; }
  /// Up to `most` bytes from `from` on, none of them from the hole. Beyond the end: "".
  std::string read(std::uint64_t from, std::size_t most) const;

  /// Nothing at or beyond `offset` is to be dropped; the largest number: anything may be.
  void hold_from(std::uint64_t offset) { held_from_ = offset; }

  /// Borrowed.
  int file() const { return file_.borrow(); }

 private:
  OutputLog(base::UniqueFd file, std::uint64_t keeps) : file_(std::move(file)), keeps_(keeps) {}
  void drop_middle();
  base::Result<std::size_t> copy(int source, std::size_t most);

  base::UniqueFd file_;
  std::uint64_t keeps_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t hole_begin_ = 0;
  std::uint64_t hole_end_ = 0;
  std::uint64_t held_from_ = ~std::uint64_t{0};
};

}  // namespace api
