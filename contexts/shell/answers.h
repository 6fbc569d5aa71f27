#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "contexts/shell/command.h"
#include "wire/channel.h"

namespace contexts::shell {

/// epoll tag of the shell.
constexpr std::uint64_t kShellTag = ~std::uint64_t{0};
/// After everything a command started is dead: for the shell to notice.
constexpr std::uint64_t kNoticeMs = 100;

/// To the command's requester, if that is still there. Never blocks.
template <class Message>
void tell(const Command& command, const Message& message) {
  if (!command.connection) return;
  (void)wire::send_message(command.connection.borrow(), message, {}, MSG_DONTWAIT);
}

}  // namespace contexts::shell
