#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/fields.h"

namespace api {

struct App;

/// What a program printed and how it ended.
struct Printed {
  std::string out;
  bool is_success = false;
};

/// Runs a small program in a context, for an answer of the API's: it is not kept, has 10 s, and
/// what it prints beyond 4 MiB is lost. `then` is called once, later; with a problem if the program
/// could not be run.
void run_inside(App& app, const std::string& context, std::vector<std::string> argv,
                const std::string& cwd, std::function<void(Checked<Printed>)> then);

}  // namespace api
