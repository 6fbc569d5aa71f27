#include "wire/terminal_bytes.h"

#include <signal.h>
#include <termios.h>

#include <catch2/catch.hpp>

using wire::NewlineRestorer;
using wire::TypedSignals;

namespace {

base::Termios cooked() {
  base::Termios settings;
  settings.local = ISIG | ICANON | IEXTEN;
  settings.characters[VINTR] = 3;
  settings.characters[VQUIT] = 28;
  settings.characters[VLNEXT] = 22;
  return settings;
}

}  // namespace

TEST_CASE("the interrupt and quit characters stand for signals", "[wire]") {
  const auto settings = cooked();
  TypedSignals typed;
  CHECK(typed.find("ls\r", settings) == 0);
  CHECK(typed.find("l\x03", settings) == SIGINT);
  CHECK(typed.find("\x1c", settings) == SIGQUIT);
  CHECK(typed.find("\x03\x1cx", settings) == SIGQUIT);
  CHECK(typed.find("", settings) == 0);
}

TEST_CASE("without ISIG, or disabled, they are characters like others", "[wire]") {
  TypedSignals typed;
  auto settings = cooked();
  settings.local &= ~unsigned(ISIG);
  CHECK(typed.find("\x03\x1c", settings) == 0);
  settings = cooked();
  settings.characters[VINTR] = 0;
  CHECK(typed.find(std::string_view("\0\x03", 2), settings) == 0);
  settings.characters[VINTR] = 'x';
  CHECK(typed.find("x", settings) == SIGINT);
}

TEST_CASE("a quoted character stands for itself, also in the next block", "[wire]") {
  const auto settings = cooked();
  TypedSignals typed;
  CHECK(typed.find("\x16\x03", settings) == 0);
  CHECK(typed.find("\x16\x16\x03", settings) == SIGINT);
  CHECK(typed.find("\x16", settings) == 0);
  CHECK(typed.find("\x03", settings) == 0);
  CHECK(typed.find("\x03", settings) == SIGINT);
  auto uncooked = settings;
  uncooked.local &= ~unsigned(ICANON);
  CHECK(typed.find("\x16\x03", uncooked) == SIGINT);
}

TEST_CASE("newlines lose the return that ONLCR gave them, and nothing else does", "[wire]") {
  NewlineRestorer newlines;
  CHECK(newlines.restore("a\r\nb\r\n") == "a\nb\n");
  CHECK(newlines.restore("a\r\r\n") == "a\r\n");
  CHECK(newlines.restore("10%\r20%") == "10%\r20%");
  CHECK(newlines.restore("a\nb") == "a\nb");
  CHECK(newlines.rest().empty());
}

TEST_CASE("a return at the end of a block waits for its successor", "[wire]") {
  NewlineRestorer newlines;
  CHECK(newlines.restore("a\r") == "a");
  CHECK(newlines.restore("\nb\r") == "\nb");
  CHECK(newlines.restore("c\r") == "\rc");
  CHECK(newlines.rest() == "\r");
  CHECK(newlines.rest().empty());
}
