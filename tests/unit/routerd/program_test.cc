#include "routerd/program.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "tests/support/child.h"
#include "tests/support/context_client.h"
#include "tests/support/fd_leak_check.h"
#include "tests/support/requires.h"
#include "tests/support/temp_dir.h"

using routerd::inspect_program;
using routerd::Program;

namespace {

const char* const kPath = "/usr/local/bin:/usr/bin:/bin";

std::string resolved(const std::string& path) { return std::filesystem::canonical(path).string(); }

class Scripts {
 public:
  std::string add(const std::string& name, const std::string& text, mode_t mode = 0755) {
    if (!base::write_file(folder_ / name, text, mode)) FAIL("write " << name);
    REQUIRE(::chmod((folder_ / name).c_str(), mode) == 0);
    return folder_ / name;
  }
  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  support::TempDir folder_;
};

Program inspected(const std::string& name, const std::string& search_path = kPath,
                  const std::string& cwd = "/") {
  auto program = inspect_program(name, search_path, cwd);
  if (!program) FAIL(program.error().message());
  return *program;
}

int error_of(const std::string& name, const std::string& search_path = kPath,
             const std::string& cwd = "/") {
  const auto program = inspect_program(name, search_path, cwd);
  return program ? 0 : program.error().code;
}

/// errno of the kernel's own execve(2) of `path`, 0 if it works.
int kernel_error(const std::string& path) {
  support::Child child([&path] {
    char* const argv[] = {const_cast<char*>(path.c_str()), nullptr};
    ::execv(path.c_str(), argv);
    return errno;
  });
  return child.wait().exit_code().value_or(-1);
}

}  // namespace

TEST_CASE("a dynamic program is what it is", "[routerd]") {
  const support::FdLeakCheck leaks;
  const auto program = inspected("/bin/true");
  CHECK(program.path == resolved("/bin/true"));
  CHECK(program.executable == program.path);
  CHECK(program.script.empty());
  CHECK_FALSE(program.is_static);
  CHECK(program.interpreters.empty());
  CHECK(program.env.empty());
}

TEST_CASE("a static program is told from a dynamic one", "[routerd]") {
  CHECK(inspected(support::programs_folder() + "/airlock-stub").is_static);
  CHECK(inspected(support::programs_folder() + "/airlock-init").is_static);
  CHECK_FALSE(inspected(support::probe_program()).is_static);
}

TEST_CASE("a name is searched as execvp does", "[routerd]") {
  Scripts first, second;
  first.add("prog", "#!/bin/sh\n", 0644);
  second.add("prog", "#!/bin/sh\n");
  first.add("closed", "#!/bin/sh\n", 0644);
  const std::string both = "/nowhere:" + first.path() + ":" + second.path();
  CHECK(inspected("prog", both).path == second / "prog");
  CHECK(inspected("prog", ":", second.path()).path == second / "prog");
  CHECK(inspected("./prog", "/nowhere", second.path()).path == second / "prog");
  CHECK(inspected(second / "prog", "").path == second / "prog");
  CHECK(error_of("no-such-program", both) == ENOENT);
  CHECK(error_of("closed", both) == EACCES);
  CHECK(error_of(first.path()) == EACCES);
  CHECK(error_of("/does/not/exist") == ENOENT);
}

TEST_CASE("an empty name is no program, as for execvp", "[routerd]") {
  CHECK(error_of("") == ENOENT);
}

TEST_CASE("an empty last folder of PATH is the working directory", "[routerd]") {
  Scripts scripts;
  scripts.add("prog", "#!/bin/sh\n");
  CHECK(error_of("prog", "/nowhere:", scripts.path()) == 0);
}

TEST_CASE("a script is followed to its interpreter", "[routerd]") {
  Scripts scripts;
  const auto path = scripts.add("script", "#! /bin/sh -e\necho\n");
  std::filesystem::create_symlink(path, scripts / "link");
  const auto program = inspected(scripts / "link");
  CHECK(program.path == path);
  CHECK(program.script == scripts / "link");
  CHECK(program.executable == resolved("/bin/sh"));
  CHECK_FALSE(program.is_static);
  CHECK(program.interpreters == std::vector{resolved("/bin/sh")});
  CHECK(program.env.empty());
}

TEST_CASE("a script of a static interpreter is static", "[routerd]") {
  Scripts scripts;
  CHECK(inspected(scripts.add("script", "#!" + support::programs_folder() + "/airlock-stub\n"))
            .is_static);
}

TEST_CASE("env is followed to the program it starts", "[routerd]") {
  Scripts scripts;
  scripts.add("interpreter", "#!/bin/sh\n");
  const std::string search = scripts.path() + ":" + kPath;
  const auto* line =
      GENERATE("#!/usr/bin/env sh\n", "#!/usr/bin/env -S sh -e\n", "#!/usr/bin/env A=1 sh\n",
               "#!/usr/bin/env -i -S A=1 B=2 sh -e -u\n", "#!  /usr/bin/env   sh",
               "#!/usr/bin/env interpreter\n", "#!/usr/bin/env -S interpreter x\n");
  CAPTURE(line);
  const auto program = inspected(scripts.add("script", line), search);
  CHECK(program.executable == resolved("/bin/sh"));
  CHECK(program.script == scripts / "script");
  CHECK(program.env == resolved("/usr/bin/env"));
  CHECK(program.interpreters.back() == resolved("/bin/sh"));
}

TEST_CASE("all interpreters of a chain of scripts are told", "[routerd]") {
  Scripts scripts;
  const auto inner = scripts.add("inner", "#!/bin/sh\n");
  const auto program = inspected(scripts.add("outer", "#!" + inner + "\n"));
  CHECK(program.interpreters == std::vector{inner, resolved("/bin/sh")});
}

TEST_CASE("a file that was written is another one", "[routerd]") {
  Scripts scripts;
  const auto path = scripts.add("file", "x");
  const auto before = routerd::file_id(path);
  CHECK(routerd::file_id(path) == before);
  // Times are those of the kernel's last tick: some writes come within one.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (routerd::file_id(path) == before && std::chrono::steady_clock::now() < deadline) {
    scripts.add("file", "y");
  }
  CHECK_FALSE(routerd::file_id(path) == before);
  CHECK(routerd::file_id(path).is_same_file(before));
}

TEST_CASE("an option of env that takes a word is not taken for its program", "[routerd]") {
  Scripts scripts;
  const auto* line = GENERATE("#!/usr/bin/env -S -u FOO sh\n", "#!/usr/bin/env -S -C / sh\n",
                              "#!/usr/bin/env -S'sh' -e\n");
  CAPTURE(line);
  CHECK(error_of(scripts.add("script", line)) == 0);
}

TEST_CASE("a missing interpreter is ENOENT as the kernel says it", "[routerd]") {
  Scripts scripts;
  const auto path = scripts.add("script", "#!/does/not/exist\n");
  CHECK(error_of(path) == ENOENT);
  CHECK(kernel_error(path) == ENOENT);
  CHECK(error_of(scripts.add("env", "#!/usr/bin/env no-such-program\n")) == ENOENT);
  CHECK_THAT(inspect_program(path, kPath, "/").error().message(),
             Catch::Contains("interpreter '/does/not/exist'"));
}

TEST_CASE("what is neither ELF nor script is ENOEXEC", "[routerd]") {
  Scripts scripts;
  for (const std::string text : {"", "echo x\n", "#",
                                 "\x7f"
                                 "EL"}) {
    CAPTURE(text);
    const auto path = scripts.add("file", text);
    CHECK(error_of(path) == ENOEXEC);
    CHECK(kernel_error(path) == ENOEXEC);
  }
  CHECK(error_of(scripts.add("file", "#! ")) != 0);
}

TEST_CASE("a program for musl is none for the interposer", "[routerd]") {
  Scripts scripts;
  auto program = base::read_file("/bin/true").value();
  const std::string glibc = "/lib64/ld-linux-x86-64.so.2";
  std::string musl = "/lib/ld-musl-x86_64.so.1";
  musl.resize(glibc.size(), '\0');
  const auto at = program.find(glibc);
  REQUIRE(at != std::string::npos);
  program.replace(at, glibc.size(), musl);
  const auto found = inspected(scripts.add("musl", program));
  CHECK(found.is_musl);
  CHECK(found.is_static);
  CHECK_FALSE(inspected("/bin/true").is_musl);
}

TEST_CASE("an ELF header that is cut or lies is no crash", "[routerd]") {
  Scripts scripts;
  const auto whole = base::read_file("/bin/true").value();
  for (const std::size_t length : {std::size_t{4}, std::size_t{16}, std::size_t{63}}) {
    const auto path = scripts.add("cut", whole.substr(0, length));
    CHECK(error_of(path) == ENOEXEC);
    CHECK(kernel_error(path) == ENOEXEC);
  }
  for (const std::size_t length : {std::size_t{64}, std::size_t{100}}) {
    CHECK(inspected(scripts.add("cut", whole.substr(0, length))).is_static);
  }
  std::string lying = whole;
  for (const int at : {32, 39, 56, 57})
    lying[static_cast<std::size_t>(at)] = '\xff';  // e_phoff, e_phnum
  CHECK(inspected(scripts.add("lying", lying)).is_static);
}

TEST_CASE("scripts of scripts are followed as deep as the kernel does", "[routerd]") {
  Scripts scripts;
  std::string before = "/bin/true";
  for (int depth = 1; depth <= 8; ++depth) {
    const auto path = scripts.add("s" + std::to_string(depth), "#!" + before + "\n");
    CAPTURE(depth);
    CHECK(error_of(path) == kernel_error(path));
    before = path;
  }
  CHECK(error_of(before) == ELOOP);
}

TEST_CASE("scripts that run each other are a loop", "[routerd]") {
  Scripts scripts;
  scripts.add("a", "#!" + (scripts / "b") + "\n");
  scripts.add("b", "#!" + (scripts / "a") + "\n");
  CHECK(error_of(scripts / "a") == ELOOP);
  scripts.add("self", "#!" + (scripts / "self") + "\n");
  CHECK(error_of(scripts / "self") == ELOOP);
}

TEST_CASE("an interpreter's path may be as long as the kernel takes", "[routerd]") {
  Scripts scripts;
  const std::string folder = scripts / std::string(150, 'd');
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("/bin/true", folder + "/true");
  const auto path = scripts.add("script", "#!" + folder + "/true\n");
  CHECK(kernel_error(path) == 0);
  CHECK(error_of(path) == 0);
}

TEST_CASE("a program that may only be executed is taken as it is", "[routerd][root]") {
  if (support::lacks_root()) return;
  Scripts scripts;
  std::filesystem::copy_file("/bin/true", scripts / "secret");
  REQUIRE(::chmod((scripts / "secret").c_str(), 0711) == 0);
  CHECK(support::text_of_child_as(1000, [&]() -> std::string {
          const auto program = inspect_program(scripts / "secret", kPath, "/");
          if (!program) return program.error().message();
          return program->executable + (program->is_static ? " static" : "");
        }) == scripts / "secret");
}

TEST_CASE("file_id tells files apart and follows links", "[routerd]") {
  Scripts scripts;
  scripts.add("a", "x");
  scripts.add("b", "x");
  std::filesystem::create_symlink(scripts / "a", scripts / "link");
  std::filesystem::create_hard_link(scripts / "a", scripts / "hard");
  CHECK(routerd::file_id(scripts / "a") == routerd::file_id(scripts / "link"));
  CHECK(routerd::file_id(scripts / "a") == routerd::file_id(scripts / "hard"));
  CHECK(routerd::file_id(scripts / "a") != routerd::file_id(scripts / "b"));
  CHECK(routerd::file_id(scripts / "a").is_known());
  CHECK_FALSE(routerd::file_id(scripts / "missing").is_known());
}
