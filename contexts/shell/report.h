#pragma once

// The private protocol of a shell host and its bash, as values. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "contexts/shell/shell_protocol.h"
#include "wire/message.h"

namespace contexts::shell {

struct Report {
  ShellReport head{};
  /// Pids of the shell's running jobs.
  std::vector<int> background;
  std::string folder;
  wire::StringList changed_names;
};

/// One datagram of the shell, which user code may have sent: EBADMSG unless it is whole.
base::Result<Report> decode_report(std::string_view datagram);

/// What a command's datagram carries; `payload` goes to a memfd if it is long.
struct CommandText {
  wire::StringList set;
  wire::StringList unset;
  wire::StringList scoped;
  std::string folder;
  std::string scoped_folder;
  std::string command;
  bool wants_checkpoint = true;
};

struct EncodedCommand {
  ShellCommand head{};
  std::string payload;
};

EncodedCommand encode_command(const CommandText& text);

}  // namespace contexts::shell
