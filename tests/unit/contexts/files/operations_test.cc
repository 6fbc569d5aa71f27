// airlock-files itself, without a context around it: what its clients may rely on.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fds.h"
#include "tests/support/temp_dir.h"
#include "wire/channel.h"
#include "wire/file_tag.h"

namespace {

namespace fs = std::filesystem;
using Operation = wire::FileRequest::Operation;
using Why = wire::FileFailed::Why;

class Tool {
 public:
  explicit Tool(const std::string& folder) {
    auto pair = support::stream_pair();
    socket_ = std::move(pair.ours);
    const int theirs = pair.theirs.borrow();
    const std::string program = support::programs_folder() + "/airlock-files";
    child_ = std::make_unique<support::Child>([theirs, program, folder] {
      ::umask(022);
      if (::chdir(folder.c_str()) != 0) return 126;
      ::dup2(theirs, 0);
      ::close_range(3, ~0u, 0);
      ::execl(program.c_str(), "airlock-files", nullptr);
      return 127;
    });
  }

  template <class Message>
  void send(const Message& message) {
    REQUIRE(wire::send_message(socket_.borrow(), message));
  }
  wire::Frame next() {
    auto frame = receiver_.receive(socket_.borrow());
    REQUIRE(frame);
    REQUIRE(*frame);
    return std::move(**frame);
  }
  template <class Message>
  Message next_as() {
    const auto frame = next();
    REQUIRE(frame.type == wire::type_of<Message>());
    auto message = wire::decode<Message>(frame.payload);
    REQUIRE(message);
    return std::move(*message);
  }
  /// Of an operation that only succeeds or fails: 0, errno, or -1 for others.
  int change(const wire::FileRequest& request) {
    send(request);
    const auto frame = next();
    if (frame.type == wire::MessageType::file_end) return 0;
    REQUIRE(frame.type == wire::MessageType::file_failed);
    const auto failure = wire::decode<wire::FileFailed>(frame.payload);
    REQUIRE(failure);
    return failure->why == Why::os ? failure->error : -1;
  }
  std::string get(const std::string& path, wire::FileRange range = {}) {
    send(wire::FileRequest{.operation = Operation::get, .path = path});
    (void)next_as<wire::FileHead>();
    send(range);
    std::string contents;
    for (;;) {
      const auto frame = next();
      if (frame.type == wire::MessageType::file_end) return contents;
      REQUIRE(frame.type == wire::MessageType::file_data);
      contents += wire::decode<wire::FileData>(frame.payload)->bytes;
    }
  }
  int put(const wire::FileRequest& request, const std::string& contents) {
    send(request);
    const auto frame = next();
    if (frame.type == wire::MessageType::file_failed) {
      const auto failure = wire::decode<wire::FileFailed>(frame.payload);
      return failure->why == Why::os ? failure->error : -1;
    }
    REQUIRE(frame.type == wire::MessageType::file_ready);
    send(wire::FileData{contents});
    send(wire::FileEnd{});
    const auto answer = next();
    if (answer.type == wire::MessageType::file_failed) return -1;
    (void)next_as<wire::FileEnd>();
    return 0;
  }
  void leave() { socket_.reset(); }
  int exit_code() { return child_->wait().exit_code().value_or(-1); }

 private:
  base::UniqueFd socket_;
  wire::Receiver receiver_;
  std::unique_ptr<support::Child> child_;
};

wire::FileRequest put_of(const std::string& path) {
  return {.operation = Operation::put, .path = path};
}

std::string read(const std::string& path) {
  auto contents = base::read_file(path);
  return contents ? *contents : "(" + contents.error().message() + ")";
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(folder)) names.push_back(each.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("one run does many operations and ends with its client", "[files]") {
  const support::TempDir folder;
  Tool tool(folder.path());
  const std::string contents = std::string(200'000, 'x') + std::string("\0\xff", 2);
  CHECK(tool.put(put_of("f"), contents) == 0);
  CHECK(read(folder / "f") == contents);
  CHECK(tool.get("f") == contents);
  CHECK(tool.get("f", {100, 5}) == "xxxxx");
  CHECK(tool.get("f", {199'999, 100}) == std::string("x\0\xff", 3));
  CHECK(tool.get("f", {1'000'000, 1}).empty());
  CHECK(tool.change({.operation = Operation::remove, .path = "f"}) == 0);
  CHECK(tool.change({.operation = Operation::remove, .path = "f"}) == ENOENT);
  tool.leave();
  CHECK(tool.exit_code() == 0);
}

TEST_CASE("a client that leaves in the middle leaves nothing", "[files]") {
  const support::TempDir folder;
  REQUIRE(base::write_file(folder / "f", "old", 0644));
  Tool tool(folder.path());
  tool.send(put_of("f"));
  (void)tool.next_as<wire::FileReady>();
  tool.send(wire::FileData{"new"});
  tool.leave();
  CHECK(tool.exit_code() == 0);
  CHECK(read(folder / "f") == "old");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"f"});
}

TEST_CASE("a put that fails listens again after the rest of it", "[files]") {
  const support::TempDir folder;
  Tool tool(folder.path());
  CHECK(tool.put(put_of("nothing/f"), "x") == ENOENT);
  CHECK(tool.put(put_of("f/"), "x") == EISDIR);
  auto request = put_of("f");
  request.if_match = {"*"};
  CHECK(tool.put(request, "x") == -1);
  request = put_of("f");
  request.if_none_match = {"*"};
  CHECK(tool.put(request, "x") == 0);
  CHECK(tool.put(request, "y") == -1);
  CHECK(read(folder / "f") == "x");
}

TEST_CASE("a condition is looked at when the file is complete, too", "[files]") {
  const support::TempDir folder;
  Tool tool(folder.path());
  auto request = put_of("f");
  request.if_none_match = {"*"};
  tool.send(request);
  CHECK_FALSE(tool.next_as<wire::FileReady>().exists);
  REQUIRE(base::write_file(folder / "f", "first", 0644));
  tool.send(wire::FileData{"second"});
  tool.send(wire::FileEnd{});
  CHECK(tool.next_as<wire::FileFailed>().why == Why::condition);
  CHECK(read(folder / "f") == "first");
  CHECK(names_in(folder.path()).size() == 1);
}

TEST_CASE("nothing waits for what is no regular file", "[files]") {
  const support::TempDir folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0666) == 0);
  Tool tool(folder.path());
  for (const std::string path : {"fifo", "/dev/null", "/dev/zero"}) {
    CAPTURE(path);
    CHECK(tool.change({.operation = Operation::get, .path = path}) == -1);
    CHECK(tool.change(put_of(path)) == -1);
  }
  CHECK(tool.change({.operation = Operation::get, .path = "."}) == EISDIR);
  CHECK(tool.change({.operation = Operation::get, .path = ""}) == ENOENT);
}

TEST_CASE("a file that gets shorter is no whole one", "[files]") {
  const support::TempDir folder;
  REQUIRE(base::write_file(folder / "f", std::string(1 << 20, 'x'), 0644));
  Tool tool(folder.path());
  tool.send(wire::FileRequest{.operation = Operation::get, .path = "f"});
  const auto head = tool.next_as<wire::FileHead>();
  CHECK(head.has_length);
  CHECK(head.length == 1 << 20);
  REQUIRE(::truncate((folder / "f").c_str(), 100'000) == 0);
  tool.send(wire::FileRange{0, head.length});
  for (;;) {
    const auto frame = tool.next();
    if (frame.type == wire::MessageType::file_data) continue;
    REQUIRE(frame.type == wire::MessageType::file_failed);
    CHECK(wire::decode<wire::FileFailed>(frame.payload)->error == ESTALE);
    break;
  }
}

TEST_CASE("what the kernel makes up has its true length", "[files]") {
  Tool tool("/");
  tool.send(wire::FileRequest{.operation = Operation::get, .path = "proc/version"});
  const auto head = tool.next_as<wire::FileHead>();
  CHECK(head.entry.size == 0);
  CHECK(head.has_length);
  CHECK(head.length == read("/proc/version").size());
}

TEST_CASE("removing and listing follow no symlinks", "[files]") {
  const support::TempDir folder;
  const support::TempDir other;
  REQUIRE(base::write_file(other / "kept", "", 0644));
  fs::create_directories(folder / "a/b");
  fs::create_symlink(other.path(), folder / "a/b/link");
  Tool tool(folder.path());
  wire::FileRequest request{.operation = Operation::list, .path = "."};
  request.is_recursive = true;
  request.limit = 100;
  tool.send(request);
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) names.push_back(tool.next_as<wire::FileEntry>().name);
  CHECK_FALSE(tool.next_as<wire::FileEnd>().is_truncated);
  CHECK(names == std::vector<std::string>{"a", "a/b", "a/b/link"});
  request = {.operation = Operation::remove, .path = "a"};
  CHECK(tool.change(request) == ENOTEMPTY);
  request.is_recursive = true;
  CHECK(tool.change(request) == 0);
  CHECK(names_in(folder.path()).empty());
  CHECK(names_in(other.path()) == std::vector<std::string>{"kept"});
}

TEST_CASE("a symlink is made, and replaced if that is wanted", "[files]") {
  const support::TempDir folder;
  Tool tool(folder.path());
  wire::FileRequest request{.operation = Operation::link, .path = "link", .to = "one"};
  CHECK(tool.change(request) == 0);
  request.to = "two";
  CHECK(tool.change(request) == EEXIST);
  request.replaces = true;
  CHECK(tool.change(request) == 0);
  CHECK(fs::read_symlink(folder / "link") == "two");
}

TEST_CASE("whoever locks a folder delays conditions, and nothing else", "[files]") {
  const support::TempDir folder;
  Tool tool(folder.path());
  base::UniqueFd lock(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(lock.borrow(), LOCK_EX) == 0);
  CHECK(tool.put(put_of("f"), "x") == 0);
  auto request = put_of("g");
  request.if_none_match = {"*"};
  tool.send(request);
  (void)tool.next_as<wire::FileReady>();
  tool.send(wire::FileEnd{});
  lock.reset();
  CHECK(tool.next_as<wire::FileEntry>().size == 0);
  (void)tool.next_as<wire::FileEnd>();
}

TEST_CASE("who does not speak the protocol is left", "[files]") {
  const support::TempDir folder;
  {
    Tool tool(folder.path());
    tool.send(wire::Control{"{}"});
    CHECK(tool.exit_code() == 0);
  }
  Tool tool(folder.path());
  tool.send(put_of("f"));
  (void)tool.next_as<wire::FileReady>();
  tool.send(wire::Control{"{}"});
  tool.leave();
  CHECK(tool.exit_code() == 0);
  CHECK(names_in(folder.path()).empty());
}
