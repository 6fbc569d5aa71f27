#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace bench {

/// What came of a streamed answer.
struct Streamed {
  double bytes = 0;  ///< on the wire
  std::string tail;  ///< the end of it, 16 KiB at most
};

/// One connection to the API on 127.0.0.1, kept alive. Blocking; does so little itself that the API
/// is what is measured. Throws std::runtime_error where an answer is not what it must be.
class HttpClient {
 public:
  HttpClient(std::uint16_t port, std::string token);

  /// The body of the answer, whose status must be 2xx.
  std::string request(std::string_view method, std::string_view path, std::string_view body = {});

  /// An answer in chunks, to its end. `between` is called now and then.
  template <class Action>
  Streamed stream(std::string_view path, std::string_view accept, std::string_view body,
                  Action between) {
    begin_stream(path, accept, body);
    while (read_some_of_stream()) between();
    return {streamed_, tail_};
  }

 protected:
  void send_head(std::string_view method, std::string_view path, std::string_view fields,
                 std::string_view body);
  /// The head of the answer; what has been read beyond it stays in `buffer_`.
  std::string read_head();
  void send_all(std::string_view bytes);
  std::string take(std::size_t size);
  /// Reads on until `size` bytes have come in all, and looks at none. `between` is called now and
  /// then.
  template <class Action>
  void drain(double size, Action between) {
    for (; size > 0; between()) size -= static_cast<double>(receive().size());
  }

 private:
  void begin_stream(std::string_view path, std::string_view accept, std::string_view body);
  bool read_some_of_stream();
  std::string_view receive();

  base::UniqueFd socket_;
  std::string token_;
  std::string block_;   ///< what recv(2) fills
  std::string buffer_;  ///< what has not been taken
  std::string tail_;
  double streamed_ = 0;
};

/// A WebSocket that is attached by airlock.v1 (docs/API.md).
class AttachedClient : HttpClient {
 public:
  /// `path` ends in `attach?…`.
  AttachedClient(std::uint16_t port, std::string token, std::string_view path);

  void type(std::string_view bytes);
  /// The next message that is not the status: its output. Empty: the exec has ended.
  std::string output();
  using HttpClient::drain;

 private:
  std::string message();
};

}  // namespace bench
