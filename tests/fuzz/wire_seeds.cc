// wire_seeds FOLDER: writes a seed for each message, as tests/support/messages.h has it. To be run
// when messages have changed; the result is in corpus/wire.

#include <cstdio>
#include <string>

#include "base/file.h"
#include "tests/support/messages.h"
#include "wire/codec.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("wire_seeds FOLDER\n", stderr), 2;
  const std::string folder = argv[1];
  char index = 0;
  const auto write = [&](const std::string& name, const std::string& payload) {
    const auto written = base::write_file(folder + "/" + name, index++ + payload, 0644);
    if (!written) std::fprintf(stderr, "%s\n", written.error().message().c_str());
    return written.has_value();
  };
  bool is_done = true;
#define AIRLOCK_ROW(Message, name) \
  is_done = write(#name, wire::encode(support::full<wire::Message>())) && is_done;
  AIRLOCK_MESSAGES(AIRLOCK_ROW)
#undef AIRLOCK_ROW
  const auto header = wire::encode_header({17, wire::MessageType::exec_request, 1, 3});
  return write("header", header) && is_done ? 0 : 1;
}
