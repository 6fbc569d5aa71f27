#include "api/exec_streams.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace api {
namespace {

struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};

/// Programs of other users may open /dev/stdin and /dev/stdout, too.
base::Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::os_error("make a pipe");
  Pipe pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
  (void)::fchmod(ends[0], 0666);
  return pipe;
}

/// A sealed file, at its beginning, that programs can only read.
base::Result<base::UniqueFd> make_input(const std::string& bytes) {
  base::UniqueFd file(::memfd_create("airlock-stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return base::os_error("make a file for input");
  if (auto written = base::write_all(file.borrow(), bytes); !written) {
    return tl::unexpected<base::Error>(written.error());
  }
  ::fcntl(file.borrow(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  if (::lseek(file.borrow(), 0, SEEK_SET) != 0) return base::os_error("rewind input");
  return file;
}

}  // namespace

base::Result<ExecStreams> make_streams(const ExecOrder& order) {
  ExecStreams streams;
  if (order.terminal) return streams;
  if (order.stdin_kind == ExecOrder::Stdin::open) {
    auto pipe = make_pipe();
    if (!pipe) return tl::unexpected<base::Error>(pipe.error());
    streams.input = std::move(pipe->write);
    streams.theirs.push_back(std::move(pipe->read));
  } else if (order.stdin_kind == ExecOrder::Stdin::bytes) {
    auto file = make_input(order.stdin_bytes);
    if (!file) return tl::unexpected<base::Error>(file.error());
    streams.theirs.push_back(std::move(*file));
  } else {
    auto null = base::open_file("/dev/null", O_RDONLY);
    if (!null) return tl::unexpected<base::Error>(null.error());
    streams.theirs.push_back(std::move(*null));
  }
  for (auto* end : {&streams.out, &streams.err}) {
    auto pipe = make_pipe();
    if (!pipe) return tl::unexpected<base::Error>(pipe.error());
    *end = std::move(pipe->read);
    streams.theirs.push_back(std::move(pipe->write));
  }
  return streams;
}

}  // namespace api
