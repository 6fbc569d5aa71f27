#include "api/output_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/file.h"

namespace api {
namespace {

constexpr std::uint64_t kPage = 4096;
// Holes are made in steps: each costs a system call.
constexpr std::uint64_t kStep = 256u << 10;

}  // namespace

base::Result<OutputLog> OutputLog::create(std::uint64_t keeps) {
  base::UniqueFd file(::memfd_create("airlock-output", MFD_CLOEXEC));
  if (!file) return base::os_error("make a file for output");
  return OutputLog(std::move(file), keeps);
}

base::Result<OutputLog> OutputLog::adopt(base::UniqueFd file, std::uint64_t keeps) {
  const off_t end = ::lseek(file.borrow(), 0, SEEK_CUR);
  if (end < 0) return base::os_error("take up a file of output");
  OutputLog log(std::move(file), keeps);
  log.end_ = static_cast<std::uint64_t>(end);
  // By a description of its own: SEEK_HOLE moves the position, which is the cursor.
  const auto name = "/proc/self/fd/" + std::to_string(log.file_.borrow());
  auto second = base::open_file(name, O_RDONLY);
  if (!second) return tl::unexpected<base::Error>(second.error());
  const off_t hole = ::lseek(second->borrow(), 0, SEEK_HOLE);
  const off_t data = hole >= 0 && hole < end ? ::lseek(second->borrow(), hole, SEEK_DATA) : -1;
  if (data > hole) {
    log.hole_begin_ = static_cast<std::uint64_t>(hole);
    log.hole_end_ = static_cast<std::uint64_t>(data);
  }
  return log;
}

base::Result<std::size_t> OutputLog::fill(int source, std::size_t most) {
  const ssize_t moved =
      ::splice(source, nullptr, file_.borrow(), nullptr, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
  if (moved < 0 && errno == EINVAL) return copy(source, most);  // a terminal
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (moved < 0) return base::os_error("read output");
  if (moved == 0) return base::failure("read output", EPIPE);
  end_ += static_cast<std::uint64_t>(moved);
  drop_middle();
  return static_cast<std::size_t>(moved);
}

base::Result<std::size_t> OutputLog::copy(int source, std::size_t most) {
  std::array<char, 65536> block;  // NOLINT: filled by read(2)
  const ssize_t got = ::read(source, block.data(), std::min(most, block.size()));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  // EIO: nobody has the other end of the terminal open (tty_ioctl(4)).
  if (got == 0 || (got < 0 && errno == EIO)) return base::failure("read output", EPIPE);
  if (got < 0) return base::os_error("read output");
  const auto size = static_cast<std::size_t>(got);
  if (auto written = append({block.data(), size}); !written) {
    return tl::unexpected<base::Error>(written.error());
  }
  return size;
}

base::Result<void> OutputLog::append(std::string_view bytes) {
  if (auto written = base::write_all(file_.borrow(), bytes); !written) return written;
  end_ += bytes.size();
  drop_middle();
  return {};
}

void OutputLog::drop_middle() {
  const std::uint64_t half = (keeps_ / 2 + kPage - 1) / kPage * kPage;
  const std::uint64_t keep_from = std::min(end_ - std::min(end_, half), held_from_);
  const std::uint64_t target = keep_from / kPage * kPage;
  const std::uint64_t begin = std::max(half, hole_end_);
  if (target < begin + kStep) return;
  const int punched = ::fallocate(file_.borrow(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(begin), static_cast<off_t>(target - begin));
  if (punched != 0) return;
  if (hole_end_ == 0) hole_begin_ = half;
  hole_end_ = target;
}

std::string OutputLog::read(std::uint64_t from, std::size_t most) const {
  if (from >= hole_begin_ && from < hole_end_) return {};
  const std::uint64_t end = from < hole_begin_ ? hole_begin_ : end_;
  if (from >= end) return {};
  std::string bytes(std::min<std::uint64_t>(most, end - from), '\0');
  const ssize_t got = ::pread(file_.borrow(), bytes.data(), bytes.size(), static_cast<off_t>(from));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace api
