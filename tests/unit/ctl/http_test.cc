#include "ctl/http.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cerrno>

using ctl::HttpAnswer;

namespace {

/// An API that answers `bytes`, and then has gone unless `stays`.
class Server {
 public:
  explicit Server(std::string_view bytes, bool stays = false) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    ours_.reset(ends[0]);
    theirs_.reset(ends[1]);
    send(bytes);
    if (!stays) ::shutdown(ours_.borrow(), SHUT_WR);
  }
  void send(std::string_view bytes) const {
    REQUIRE(::send(ours_.borrow(), bytes.data(), bytes.size(), 0) ==
            static_cast<ssize_t>(bytes.size()));
  }
  base::Result<HttpAnswer> ask() { return HttpAnswer::ask(std::move(theirs_), {}); }

 private:
  base::UniqueFd ours_;
  base::UniqueFd theirs_;
};

/// Its body, or the error's name.
std::string body_of(const std::string& bytes) {
  Server server(bytes);  // stays: what it has not read would make its end a reset
  auto answer = server.ask();
  auto body = answer ? answer->read_all()
                     : base::Result<std::string>(tl::unexpected<base::Error>(answer.error()));
  return body ? *body : ::strerrorname_np(body.error().code);
}

const std::string kHead = "HTTP/1.1 200 OK\r\n";
const std::string kChunked = kHead + "Transfer-Encoding: chunked\r\n\r\n";

}  // namespace

TEST_CASE("an answer ends by its length, its chunks or its connection", "[ctl][http]") {
  CHECK(body_of(kHead + "Content-Length: 3\r\n\r\nabcd") == "abc");
  CHECK(body_of(kHead + "Content-Length: 0\r\n\r\n") == "");
  CHECK(body_of(kHead + "content-length:\t3 \r\n\r\nabc") == "abc");
  CHECK(body_of(kChunked + "2\r\nab\r\n1; x=y\r\nc\r\n0\r\n\r\n") == "abc");
  CHECK(body_of(kHead + "\r\nabc") == "abc");
  CHECK(body_of("HTTP/1.1 204 No Content\r\n\r\nabc") == "");
  CHECK(body_of("HTTP/1.1 204\r\n\r\n") == "");
  Server server("HTTP/1.1 404 Not Found\r\nX-Name:  a b \r\n\r\n");
  auto answer = server.ask();
  REQUIRE(answer);
  CHECK(answer->status() == 404);
  CHECK(answer->header("x-name") == "a b");
  CHECK(answer->header("other").empty());
}

TEST_CASE("chunks count, whatever a length says", "[ctl][http]") {
  const std::string chunks = "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  CHECK(body_of(kHead + "Content-Length: 0\r\n" + chunks) == "abc");
  CHECK(body_of(kHead + "Content-Length: 5\r\n" + chunks) == "abc");
}

TEST_CASE("what was cut off is no end", "[ctl][http]") {
  CHECK(body_of(kHead + "Content-Length: 4\r\n\r\nabc") == "ECONNRESET");
  CHECK(body_of(kChunked + "4\r\nabc") == "ECONNRESET");
  CHECK(body_of(kChunked + "3\r\nabc\r\n") == "ECONNRESET");
  CHECK(body_of("HTTP/1.1 200 OK\r\nX: y") == "ECONNRESET");
  CHECK(body_of("") == "ECONNRESET");
}

TEST_CASE("what is no answer is refused", "[ctl][http]") {
  for (const std::string first :
       {"HTTP/1.0 200 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 20", "HTTP/1.1 2000 OK",
        "HTTP/1.1 100 Continue", "HTTP/1.1  200", "nonsense", ""}) {
    CHECK(body_of(first + "\r\n\r\n") == "EPROTO");
  }
  for (const std::string header :
       {"Content-Length: 3x", "Content-Length: -3", "Content-Length:", "no colon", ": empty",
        "Content-Length: 99999999999999999999", "Transfer-Encoding: gzip",
        "Content-Length: 3\r\nContent-Length: 3"}) {
    CHECK(body_of(kHead + header + "\r\n\r\nabc") == "EPROTO");
  }
  for (const std::string chunks : {"x\r\nabc\r\n", "\r\nabc\r\n", "-1\r\nabc\r\n", "3x\r\nabc\r\n",
                                   "3\r\nabcd\r\n0\r\n\r\n", "11111111111111111\r\nabc\r\n"}) {
    CHECK(body_of(kChunked + chunks) == "EPROTO");
  }
  CHECK(body_of(kHead + std::string(70'000, 'x')) == "EPROTO");
}

TEST_CASE("has_more() promises no wait", "[ctl][http]") {
  Server server(kChunked + "3\r\n", true);
  auto answer = server.ask();
  REQUIRE(answer);
  CHECK_FALSE(answer->has_more());  // the size, and nothing of it
  server.send("a");
  CHECK(answer->read_some().value() == "a");
  CHECK_FALSE(answer->has_more());
  server.send("bc\r\n");
  CHECK(answer->read_some().value() == "bc");
  CHECK_FALSE(answer->has_more());
  server.send("0\r\n\r\n");
  CHECK(answer->read_some().value() == "");
  CHECK(answer->has_more());
}
