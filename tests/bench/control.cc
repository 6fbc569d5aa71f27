#include "tests/bench/control.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "base/file.h"

namespace bench {

using nlohmann::json;

void become(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  _exit(127);
}

int run_command(const std::vector<std::string>& argv) {
  const pid_t pid = ::fork();
  if (pid == 0) become(argv);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void require(bool is_so, const std::string& what) {
  if (!is_so) throw std::runtime_error(what);
}

json ask(int socket, const json& request) {
  if (!wire::send_message(socket, wire::Control{request.dump()})) std::exit(1);
  wire::Receiver receiver;
  auto frame = receiver.receive(socket);
  if (!frame || !*frame) std::exit(1);
  auto reply = wire::decode<wire::ControlReply>((*frame)->payload);
  const json answer = json::parse(reply ? reply->json : "{}");
  if (!answer.value("ok", false)) {
    std::cerr << answer.dump() << "\n";
    std::exit(1);
  }
  return answer;
}

bool enter_own_network() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP;
  return ::ioctl(socket.borrow(), SIOCSIFFLAGS, &loopback) == 0;
}

long memory_kib(int pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::atol(line.c_str() + field.size() + 1);
  }
  return 0;
}

long context_pss_kib(int init) {
  const std::string id = std::to_string(init);
  auto children = base::read_file("/proc/" + id + "/task/" + id + "/children");
  const int spawner = children ? std::atoi(children->c_str()) : 0;
  return memory_kib(init, "Pss") + memory_kib(spawner, "Pss");
}

}  // namespace bench
