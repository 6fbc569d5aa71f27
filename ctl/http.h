#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ctl {

/// A request to the HTTP API.
struct HttpRequest {
  std::string method = "GET";
  std::string path;
  /// Lines "Name: value" beside those that are always sent.
  std::vector<std::string> headers = {};
  std::string body = {};
};

/// The answer to one request, read as it comes. Blocks.
class HttpAnswer {
 public:
  /// Sends `request` over `connection`, which is used for nothing else, and reads the head of the
  /// answer. EPROTO: that is not HTTP/1.1; EPIPE: nobody has got anything of the request;
  /// ECONNRESET: whether it was done is not known.
  static base::Result<HttpAnswer> ask(base::UniqueFd connection, const HttpRequest& request);

  unsigned status() const { return status_; }
  bool is_error() const { return status_ >= 400; }
  /// "" if there is none; `name` in lower case.
  std::string header(const std::string& name) const;
  /// The next bytes of the body, empty at its end. ECONNRESET: it was cut off; EPROTO: it is not as
  /// its head says. After an error nothing more can be read.
  base::Result<std::string> read_some();
  /// All that is left of it; EMSGSIZE above 64 MiB.
  base::Result<std::string> read_all();
  /// Something has come already that read_some() would give at once.
  bool has_more() const;
  /// Readable when there may be more. Borrowed.
  int socket() const { return connection_.borrow(); }

 private:
  explicit HttpAnswer(base::UniqueFd connection) : connection_(std::move(connection)) {}
  base::Result<void> read_head();
  base::Result<void> take_header(const std::string& line);
  base::Result<void> read_framing();
  base::Result<bool> fill();
  base::Result<std::string> take_line();
  base::Result<void> next_chunk();

  base::UniqueFd connection_;
  unsigned status_ = 0;
  std::map<std::string, std::string> headers_;
  bool is_chunked_ = false;
  bool is_over_ = false;
  bool is_first_chunk_ = true;
  /// Of the body or its chunk; without either, to the end of the connection.
  std::size_t left_ = 0;
  bool has_length_ = false;
  std::string bytes_;
};

}  // namespace ctl
