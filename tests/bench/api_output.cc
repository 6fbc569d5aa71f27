#include "tests/bench/api_output.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"
#include "base/terminal.h"
#include "tests/bench/control.h"
#include "tests/bench/measure.h"

namespace bench {
namespace {

using nlohmann::json;

constexpr int kKeystrokes = 1000;
constexpr double kStreamed = 2147483648;  // bytes: 2G of head(1)
constexpr std::size_t kTextFile = 64u << 20;

/// What `argv` writes, read from a pipe: MB/s.
double direct_rate(const std::vector<std::string>& argv) {
  int ends[2];
  require(::pipe2(ends, O_CLOEXEC) == 0, "no pipe");
  const double start = now_us();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], 1);
    become(argv);
  }
  ::close(ends[1]);
  std::string block(1u << 20, '\0');
  double size = 0;
  while (const ssize_t got = ::read(ends[0], block.data(), block.size())) {
    require(got > 0, "a pipe cannot be read");
    size += static_cast<double>(got);
  }
  const double seconds = (now_us() - start) / 1e6;
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  require(size == kStreamed, "not all output has come");
  return size / 1e6 / seconds;
}

/// The most that the API takes while something goes on.
class Watch {
 public:
  explicit Watch(const ApiDaemon& api)
      : api_(api), before_(api.rss_kib()), peak_(before_), cpu_(api.cpu_seconds()) {}
  void look() {
    if (++looks_ % 64 != 1) return;
    peak_ = std::max(peak_, api_.rss_kib());
    files_ = std::max(files_, api_.files_kib());
  }
  std::vector<std::string> cells() const {
    const double cpu = api_.cpu_seconds() - cpu_;
    return {number(cpu / kStreamed * (1 << 30), 2), megabytes(before_) + " / " + megabytes(peak_),
            megabytes(files_)};
  }

 private:
  const ApiDaemon& api_;
  double before_;
  double peak_;
  double cpu_;
  double files_ = 0;
  int looks_ = 0;
};

void print_stream(const std::string& name, double seconds, double direct, const Watch& watch,
                  const std::string& budget) {
  const double rate = kStreamed / 1e6 / seconds;
  std::vector<std::string> cells = {name, number(rate), number(rate / direct, 2)};
  for (auto& cell : watch.cells()) cells.push_back(std::move(cell));
  cells.push_back(budget);
  print_row(cells);
}

void measure_events(const ApiDaemon& api, const std::string& name, const std::string& accept,
                    const json& body, const std::string& budget) {
  const double direct = direct_rate(body["argv"]);
  HttpClient client = ApiDaemon::client();
  Watch watch(api);
  const double start = now_us();
  const Streamed streamed =
      client.stream(kExecPath, accept, body.dump(), [&watch] { watch.look(); });
  const double seconds = (now_us() - start) / 1e6;
  require(streamed.tail.find("o2147483648.e0") != std::string::npos, "not all output has come");
  print_stream(name, seconds, direct, watch, budget);
}

void measure_attached(const ApiDaemon& api) {
  const double direct = direct_rate({"/usr/bin/head", "-c", "2G", "/dev/zero"});
  const json body = {{"argv", {"/bin/sh", "-c", "read line; exec head -c 2G /dev/zero"}},
                     {"stdin", "open"},
                     {"yieldMs", 0}};
  const json exec = json::parse(ApiDaemon::client().request("POST", kExecPath, body.dump()));
  AttachedClient client = ApiDaemon::attach("/api/v1/execs/" + exec["id"].get<std::string>() +
                                            "/attach?slowReader=block");
  Watch watch(api);
  const double start = now_us();
  client.type("\n");
  client.drain(kStreamed, [&watch] { watch.look(); });
  print_stream("zeros, WebSocket", (now_us() - start) / 1e6, direct, watch, "≥ 500");
}

}  // namespace

void measure_output(const ApiDaemon& api) {
  const std::string file = api.folder() + "/text";
  std::string text;
  while (text.size() < kTextFile)
    text += "A line of what a build prints, as lines of builds are: 0123456\n\n";
  text.resize(kTextFile);
  require(base::write_file(file, text, 0644).has_value(), "cannot write " + file);
  std::vector<std::string> cat = {"/bin/cat"};
  cat.resize(1 + static_cast<std::size_t>(kStreamed) / kTextFile, file);
  const json lines = {{"argv", cat}};
  const json zeros = {{"argv", {"/usr/bin/head", "-c", "2G", "/dev/zero"}},
                      {"output", {{"encoding", "base64"}}}};
  std::cout << "\n";
  print_heading({"2 GiB of output", "MB/s", "× direct pipe", "api CPU, s per GiB",
                 "api RSS before / peak (MB)", "its output files, peak (MB)", "budget"});
  measure_attached(api);
  measure_events(api, "zeros, NDJSON (base64)", "application/x-ndjson", zeros, "≥ 500");
  measure_events(api, "lines, NDJSON (text)", "application/x-ndjson", lines, "≥ 500");
  measure_events(api, "lines, SSE (text)", "text/event-stream", lines, "≥ 500");
}

namespace {

/// `cat` on a terminal that passes each byte.
const std::vector<std::string> kEcho = {"/bin/sh", "-c", "stty raw -echo; printf x; exec cat"};

Samples direct_echoes() {
  auto pty = base::open_pty();
  require(pty.has_value(), "no terminal");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    for (const int fd : {0, 1, 2}) ::dup2(pty->slave.borrow(), fd);
    become(kEcho);
  }
  pty->slave.reset();
  char byte = 0;
  require(::read(pty->master.borrow(), &byte, 1) == 1, "the terminal ended");
  Samples echoes;
  for (int i = 0; i < kKeystrokes; ++i) {
    const double start = now_us();
    require(
        ::write(pty->master.borrow(), "k", 1) == 1 && ::read(pty->master.borrow(), &byte, 1) == 1,
        "a key has no echo");
    echoes.add(now_us() - start);
  }
  pty->master.reset();
  ::waitpid(pid, nullptr, 0);
  return echoes;
}

}  // namespace

void measure_terminal() {
  HttpClient http = ApiDaemon::client();
  const json made = json::parse(
      http.request("POST", "/api/v1/contexts/user/terminals", json{{"argv", kEcho}}.dump()));
  const std::string path = "/api/v1/terminals/" + made["id"].get<std::string>();
  AttachedClient client = ApiDaemon::attach(path + "/attach");
  require(client.output() == "x", "the terminal says something else");
  Samples echoes;
  for (int i = 0; i < kKeystrokes; ++i) {
    const double start = now_us();
    client.type("k");
    require(client.output() == "k", "a key has no echo");
    echoes.add(now_us() - start);
  }
  http.request("DELETE", path);
  const Samples direct = direct_echoes();
  std::cout << "\n";
  print_heading({"a key and its echo by `cat`", "p50 (ms)", "p99 (ms)"});
  print_row({"terminal of its own", number(direct.median() / 1000, 3),
             number(direct.percentile(0.99) / 1000, 3)});
  print_row(
      {"WebSocket", number(echoes.median() / 1000, 3), number(echoes.percentile(0.99) / 1000, 3)});
}

}  // namespace bench
