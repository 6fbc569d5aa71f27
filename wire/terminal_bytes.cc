#include "wire/terminal_bytes.h"

#include <signal.h>
#include <termios.h>

#include <utility>

namespace wire {

int TypedSignals::find(std::string_view bytes, const base::Termios& settings) {
  int found = 0;
  const auto& characters = settings.characters;
  for (const char byte : bytes) {
    const auto typed = static_cast<std::uint8_t>(byte);
    if (std::exchange(is_quoted_, false)) continue;
    if (typed == 0) continue;  // _POSIX_VDISABLE
    // n_tty_receive_char_special(), drivers/tty/n_tty.c, in its order.
    if ((settings.local & ISIG) != 0 && typed == characters[VINTR]) found = SIGINT;
    if ((settings.local & ISIG) != 0 && typed == characters[VQUIT]) found = SIGQUIT;
    is_quoted_ = (settings.local & ICANON) != 0 && (settings.local & IEXTEN) != 0 &&
                 typed == characters[VLNEXT];
  }
  return found;
}

std::string NewlineRestorer::restore(std::string_view bytes) {
  std::string restored;
  restored.reserve(bytes.size() + 1);
  for (const char byte : bytes) {
    if (std::exchange(has_return_, byte == '\r') && byte != '\n') restored.push_back('\r');
    if (byte != '\r') restored.push_back(byte);
  }
  return restored;
}

std::string NewlineRestorer::rest() { return std::exchange(has_return_, false) ? "\r" : ""; }

}  // namespace wire
