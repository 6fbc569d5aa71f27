#include "base/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <climits>
#include <filesystem>

#include "tests/support/child.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/fds.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

namespace {

std::vector<int> listed_fds() {
  std::vector<int> numbers;
  for (const auto& [number, target] : support::list_fds()) numbers.push_back(number);
  return numbers;
}

bool is_close_on_exec(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

base::UniqueFd null_at(int number) {
  const base::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return base::UniqueFd(::fcntl(null.borrow(), F_DUPFD_CLOEXEC, number));
}

}  // namespace

TEST_CASE("open_fds lists what is open in ascending order", "[base]") {
  const auto before = base::open_fds();
  CHECK(before == listed_fds());
  const auto pipe = support::make_pipe();
  auto expected = before;
  for (const int fd : {pipe.read.borrow(), pipe.write.borrow()}) {
    expected.insert(std::upper_bound(expected.begin(), expected.end(), fd), fd);
  }
  CHECK(base::open_fds() == expected);
}

TEST_CASE("open_fds sees O_PATH descriptors", "[base]") {
  const base::UniqueFd path(::open("/etc/passwd", O_PATH | O_CLOEXEC));
  const auto fds = base::open_fds();
  CHECK(std::count(fds.begin(), fds.end(), path.borrow()) == 1);
}

TEST_CASE("open_fds finds sparse numbers", "[base]") {
  const int number = GENERATE(300, 511, 512, 600, 1021);
  const auto sparse = null_at(number);
  REQUIRE(sparse.borrow() == number);
  const auto fds = base::open_fds();
  CHECK(fds == listed_fds());
  CHECK(fds.back() == number);
}

TEST_CASE("open_fds finds thousands of descriptors", "[base]") {
  std::vector<base::UniqueFd> many;
  for (int i = 0; i < 1500; ++i) many.push_back(null_at(i % 2 == 0 ? 3 : 2000));
  CHECK(base::open_fds() == listed_fds());
}

TEST_CASE("open_fds finds descriptors that fill the whole table", "[base]") {
  const int size = GENERATE(64, 128, 256, 1024);
  CAPTURE(size);
  std::vector<base::UniqueFd> all;
  while (all.empty() || all.back().borrow() < size - 1) all.push_back(null_at(3));
  CHECK(base::open_fds() == listed_fds());
}

TEST_CASE("open_fds does not count its own descriptor, and a closed one is gone", "[base]") {
  const support::FdLeakCheck leaks;
  const auto before = base::open_fds();
  { const auto sparse = null_at(700); }
  CHECK(base::open_fds() == before);
}

TEST_CASE("open_fds works with none of 0 to 2 open", "[base]") {
  const std::string text = support::text_of_child([]() -> std::string {
    const auto before = base::open_fds();
    for (int fd = 0; fd <= 2; ++fd) ::close(fd);
    auto expected = before;
    std::erase_if(expected, [](int fd) { return fd <= 2; });
    return base::open_fds() == expected ? "same" : "different";
  });
  CHECK(text == "same");
}

TEST_CASE("open_fds falls back to asking each number where /proc is missing", "[base][root]") {
  if (support::lacks_root()) return;
  const support::TempDir empty;
  const std::string text = support::text_of_child([&]() -> std::string {
    const auto sparse = null_at(900);
    const auto expected = base::open_fds();
    if (::chroot(empty.path().c_str()) != 0) return "chroot failed";
    const auto probed = base::open_fds();
    return probed == expected ? "same" : "different: " + std::to_string(probed.size());
  });
  CHECK(text == "same");
}

TEST_CASE("files opened, duplicated and created are close-on-exec", "[base]") {
  const support::FdLeakCheck leaks;
  const auto file = base::open_file("/dev/null", O_RDONLY);
  REQUIRE(file);
  CHECK(is_close_on_exec(file->borrow()));
  const auto copy = base::duplicate(0);
  REQUIRE(copy);
  CHECK(is_close_on_exec(copy->borrow()));
  CHECK(copy->borrow() >= 3);
}

TEST_CASE("a failed call names the operation, the file and errno", "[base]") {
  const auto missing = base::open_file("/does/not/exist", O_RDONLY);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ENOENT);
  CHECK(missing.error().message() == "open /does/not/exist: No such file or directory");
  CHECK(base::read_file("/does/not/exist").error().code == ENOENT);
  CHECK(base::read_file("/").error().message() == "read /: Is a directory");
  CHECK(base::write_file("/proc/version", "x", 0600).error().code != 0);
  CHECK(base::read_link("/etc/passwd").error().code == EINVAL);
  CHECK(base::duplicate(-1).error().code == EBADF);
  CHECK(base::set_nonblocking(-1, true).error().code == EBADF);
}

TEST_CASE("an Error reads well with and without errno and detail", "[base]") {
  CHECK(base::Error{"open /x", ENOENT, {}}.message() == "open /x: No such file or directory");
  CHECK(base::Error{"open /x", ENOENT, "why"}.message() ==
        "open /x: No such file or directory (why)");
  CHECK(base::Error{"open /x", 0, "why"}.message() == "open /x: why");
  CHECK(base::Error{"open /x", 0, {}}.message() == "open /x");
}

TEST_CASE("a written file reads back the same, with its mode, truncated before", "[base]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const std::string path = folder / "file";
  const std::string bytes = std::string("a\0b\n", 4) + std::string(100'000, 'x');
  REQUIRE(base::write_file(path, bytes, 0600));
  CHECK(base::read_file(path).value() == bytes);
  REQUIRE(base::write_file(path, "short", 0644));
  CHECK(base::read_file(path).value() == "short");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
}

TEST_CASE("read_file takes exactly its limit and not a byte more", "[base]") {
  const support::TempDir folder;
  const std::string path = folder / "file";
  REQUIRE(base::write_file(path, std::string(40'000, 'x'), 0600));
  CHECK(base::read_file(path, 40'000).value().size() == 40'000);
  CHECK(base::read_file(path, 39'999).error().code == EFBIG);
}

TEST_CASE("read_file reads files of /proc, whose size is 0", "[base]") {
  CHECK(base::read_file("/proc/self/status").value().find("Pid:") != std::string::npos);
}

TEST_CASE("write_all reports a reader that went away", "[base]") {
  const std::string text = support::text_of_child([]() -> std::string {
    ::signal(SIGPIPE, SIG_IGN);
    auto pipe = support::make_pipe();
    pipe.read.reset();
    return std::to_string(base::write_all(pipe.write.borrow(), "x").error().code);
  });
  CHECK(text == std::to_string(EPIPE));
}

TEST_CASE("read_link returns the text of the link", "[base]") {
  const support::TempDir folder;
  std::filesystem::create_symlink("some/where else", folder / "link");
  CHECK(base::read_link(folder / "link").value() == "some/where else");
}

TEST_CASE("set_nonblocking switches O_NONBLOCK and nothing else", "[base]") {
  const support::FdLeakCheck leaks;
  const support::TempDir folder;
  const base::UniqueFd file(::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  const int before = ::fcntl(file.borrow(), F_GETFL);
  REQUIRE(base::set_nonblocking(file.borrow(), true));
  CHECK(::fcntl(file.borrow(), F_GETFL) == (before | O_NONBLOCK));
  REQUIRE(base::set_nonblocking(file.borrow(), false));
  CHECK(::fcntl(file.borrow(), F_GETFL) == before);
}
