#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "api/http.h"

namespace api {

/// What was done for requests with an Idempotency-Key, so that the same request, sent again, does
/// nothing twice. Pure: told what time it is (ms since 1970).
///
/// A key belongs to a token and an address: `name` has all three. `hash` stands for the body.
class Idempotency {
 public:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::int64_t kLongestMs = 24ll * 3600 * 1000;

  enum class Found {
    nothing,   ///< new: it is noted as going on, until keep…() or drop()
    other,     ///< the key came with another body
    going_on,  ///< the same request is being done
    answered,  ///< response() is what it was answered with
    exec,      ///< exec() is what it started
    too_many,  ///< of those that are going on
  };
  Found begin(const std::string& name, const std::string& hash, std::int64_t now);

  /// Of `name`, which must have been found as such.
  const Response& response(const std::string& name) const { return *entries_.at(name).response; }
  const std::string& exec(const std::string& name) const { return entries_.at(name).exec; }

  void keep_response(const std::string& name, Response response);
  void keep_exec(const std::string& name, const std::string& exec);
  /// Takes up what an earlier process has started.
  void adopt(const std::string& name, const std::string& hash, const std::string& exec,
             std::int64_t started);
  /// Nothing was done: it may be tried again.
  void drop(const std::string& name);

 private:
  struct Entry {
    std::string hash;
    std::int64_t began = 0;
    std::string exec;
    std::optional<Response> response;
    bool is_going_on() const { return exec.empty() && !response; }
  };
  void forget_old(std::int64_t now);

  std::map<std::string, Entry> entries_;
  /// Their names, by age.
  std::deque<std::string> order_;
};

}  // namespace api
