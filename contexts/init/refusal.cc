#include "contexts/init/refusal.h"

#include <errno.h>
#include <sys/uio.h>

#include <cstring>

#include "base/raw_syscall.h"

namespace contexts::init {

Refusal::Refusal(const wire::ExecRequest& request, SpawnStep step, int error)
    : exit_code_(step == SpawnStep::exec && error == ENOENT ? 127 : 126), error_(error) {
  const std::string_view reason = std::strerror(error);
  if (step == SpawnStep::cwd) {
    add("working directory ");
    add(request.cwd.empty() ? std::string_view("(deleted)") : std::string_view(request.cwd));
    add(" cannot be entered in the context: ");
    add(reason);
    return;
  }
  add(request.path);
  switch (step) {
    case SpawnStep::exec:
      add(": ");
      add(error == ENOENT ? "not found in the context" : reason);
      if (error == ENOEXEC) add(" (no '#!' line, or another machine's)");
      return;
    case SpawnStep::confinement:
      add(": the routing of its children cannot be enforced: ");
      break;
    case SpawnStep::credentials:
      add(": cannot become uid ");
      add_number(request.credentials.uid);
      add(": ");
      break;
    case SpawnStep::terminal:
      add(": cannot take the terminal: ");
      break;
    default:
      add(": cannot set up the process: ");
  }
  add(reason);
}

void Refusal::add_number(std::uint32_t number) {
  char* at = digits_ + sizeof digits_;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  add({at, static_cast<std::size_t>(digits_ + sizeof digits_ - at)});
}

bool Refusal::write_line(int fd) const {
  iovec parts[8];
  std::size_t used = 0;
  std::size_t total = 0;
  const auto put = [&](std::string_view text) {
    parts[used++] = {const_cast<char*>(text.data()), text.size()};
    total += text.size();
  };
  put("airlock: ");
  for (std::size_t i = 0; i < count_; ++i) put(pieces_[i]);
  put("\n");
  return base::raw::call(SYS_writev, fd, parts, used) == static_cast<long>(total);
}

wire::NotStarted Refusal::message(bool is_told) const {
  std::string text;
  for (std::size_t i = 0; i < count_; ++i) text += pieces_[i];
  return {exit_code_, error_, std::move(text), is_told};
}

}  // namespace contexts::init
