// Commands that are one request, or one stream: api, events.

#include <fcntl.h>
#include <unistd.h>

#include <iostream>

#include "base/file.h"
#include "ctl/api_client.h"
#include "ctl/client.h"
#include "ctl/exec_client.h"

namespace ctl {

using nlohmann::json;

namespace {

constexpr std::size_t kLargestBody = 8u << 20;  // as the API takes

/// What "@FILE" and "@-" stand for.
base::Result<std::string> body_of(const std::string& text) {
  if (!text.starts_with('@')) return text;
  if (text == "@-") return base::read_all(STDIN_FILENO, kLargestBody);
  auto file = base::open_file(text.substr(1), O_RDONLY);
  if (!file) return tl::unexpected<base::Error>(file.error());
  return base::read_all(file->borrow(), kLargestBody);
}

/// Everything as it comes; false if it was cut off.
bool print_body(HttpAnswer& answer) {
  std::string last;
  for (;;) {
    const auto part = answer.read_some();
    if (!part) return complain("the answer was cut off: " + part.error().message(), 0), false;
    if (part->empty()) break;
    if (!base::write_all(STDOUT_FILENO, *part)) return false;
    last = *part;
  }
  // JSON has no end of line; a person's prompt wants one.
  const bool is_for_a_person = ::isatty(STDOUT_FILENO) == 1 && !last.empty() && last.back() != '\n';
  if (is_for_a_person) (void)base::write_all(STDOUT_FILENO, "\n");
  return true;
}

}  // namespace

int api(const Common& common, const ApiOptions& options) {
  if (!options.path.starts_with('/')) {
    return complain("PATH '" + options.path + "': expected e.g. /api/v1/contexts", kUsage);
  }
  for (const auto& word : {options.method, options.path}) {
    if (word.find_first_of(" \r\n") != std::string::npos) {
      return complain("METHOD and PATH have no spaces and lines", kUsage);
    }
  }
  HttpRequest request{.method = options.method, .path = options.path};
  for (const auto& header : options.headers) {
    const bool is_header =
        header.find(':') != std::string::npos && header.find_first_of("\r\n") == std::string::npos;
    if (!is_header) return complain("header '" + header + "': expected 'Name: value'", kUsage);
    request.headers.push_back(header);
  }
  if (!options.body.empty()) {
    auto body = body_of(options.body);
    if (!body) return complain(body.error().message(), 1);
    request.body = std::move(*body);
    // If the caller has said another, that comes first and counts.
    request.headers.emplace_back("Content-Type: application/json");
  }
  auto answer = ask_api(common, request);
  if (!answer) return 1;
  const bool is_whole = print_body(*answer);
  return is_whole && !answer->is_error() ? 0 : 1;
}

int events(const Common& common) {
  auto client = Client::connect(common.runtime_dir);
  if (!client) return complain(client.error().message(), 1);
  // Without an audit log there are routing decisions.
  auto followed = client->ask("audit.follow");
  if (!followed) followed = client->ask("routes", {{"follow", true}});
  if (!followed) return complain(followed.error().message(), 1);
  for (;;) {
    const auto event = client->next_event();
    if (!event) return complain("the daemon ended", 1);
    std::cout << event->dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
  }
}

}  // namespace ctl
