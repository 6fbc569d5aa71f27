// The parts of the interposer that only look at bytes, here so that sanitizers see them run.
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <catch2/catch.hpp>
#include <string>

#include "preload/bind/names.h"
#include "preload/content.h"
#include "preload/fields.h"
#include "preload/resolve.h"

namespace preload {
namespace {

Head head_of(const std::string& text) {
  Head head = {};
  memcpy(head.bytes, text.data(), text.size() < kHeadBytes ? text.size() : kHeadBytes);
  return head;
}

/// The interpreter's name, or "none".
std::string interpreter_of(const std::string& text) {
  char interpreter[kHeadBytes];
  const Content content = classify(head_of(text), text.size(), interpreter);
  return content == Content::script ? interpreter : "none";
}

std::string blanks(size_t count) { return std::string(count, ' '); }
std::string letters(size_t count) { return std::string(count, 'x'); }

Head elf_head(const Elf64_Ehdr& header, const Elf64_Phdr& entry = {}) {
  Head head = {};
  memcpy(head.bytes, &header, sizeof(header));
  memcpy(head.bytes + header.e_phoff % 128, &entry, sizeof(entry));
  return head;
}

Elf64_Ehdr good_header() {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_type = ET_DYN;
#if defined(__x86_64__)
  header.e_machine = EM_X86_64;
#else
  header.e_machine = EM_AARCH64;
#endif
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  return header;
}

Content content_of(const Elf64_Ehdr& header, unsigned long file_size = 4096) {
  char interpreter[kHeadBytes];
  return classify(elf_head(header), file_size, interpreter);
}

std::string candidates(const char* path, const char* name, bool absolute_only = false) {
  std::string all;
  char candidate[PATH_MAX];
  PathSearch search = {path, absolute_only};
  for (;;) {
    const Candidate next = next_candidate(search, name, candidate);
    if (next == Candidate::too_long) return all + "(too long)";
    if (next == Candidate::none_left) return all;
    all += candidate + std::string(" ");
  }
}

std::string fields_of(const std::string& output, const char* text = "") {
  Text result;
  References references;
  result.add(text);
  REQUIRE(append_fields(output.c_str(), result, references));
  REQUIRE(references.publish());
  std::string shown;
  for (std::string rest = result.c_str(); !rest.empty();) {
    const size_t at = rest.find("${");
    shown += rest.substr(0, at);
    if (at == std::string::npos) break;
    const size_t end = rest.find('}');
    shown += getenv(rest.substr(at + 2, end - at - 2).c_str());
    rest = rest.substr(end + 1);
  }
  return shown;
}

TEST_CASE("a script's interpreter is the first word behind #!", "[preload]") {
  CHECK(interpreter_of("#!/bin/sh\n") == "/bin/sh");
  CHECK(interpreter_of("#! \t /bin/sh -e x\n") == "/bin/sh");
  CHECK(interpreter_of("#!/bin/sh") == "/bin/sh");
  CHECK(interpreter_of("#!") == "");
  CHECK(interpreter_of("#!\n") == "none");
  CHECK(interpreter_of("#! \t \n/bin/sh") == "none");
  CHECK(interpreter_of(" #!/bin/sh\n") == "none");
  CHECK(interpreter_of("") == "none");
}

TEST_CASE("an interpreter's name must end within the first 256 bytes", "[preload]") {
  CHECK(interpreter_of("#!" + letters(253)) == letters(253));
  CHECK(interpreter_of("#!" + letters(253) + " ") == letters(253));
  CHECK(interpreter_of("#!" + letters(253) + "\n") == letters(253));
  CHECK(interpreter_of("#!" + letters(254)) == "none");
  CHECK(interpreter_of("#!" + letters(254) + "\n") == "none");
  CHECK(interpreter_of("#!" + blanks(252) + "x ") == "x");
  CHECK(interpreter_of("#!" + blanks(254)) == "none");
  CHECK(interpreter_of("#!" + blanks(300)) == "none");
}

TEST_CASE("an ELF file needs a plausible header", "[preload]") {
  Elf64_Ehdr header = good_header();
  CHECK(content_of(header) == Content::program);
  CHECK(content_of(header, sizeof(header)) == Content::unknown);
  CHECK(content_of(header, sizeof(header) + sizeof(Elf64_Phdr)) == Content::program);
  header.e_phnum = 0;
  CHECK(content_of(header) == Content::unknown);
  header.e_phnum = 0xffff;
  CHECK(content_of(header, ~0UL) == Content::unknown);
  header = good_header();
  header.e_phoff = ~0UL;
  CHECK(content_of(header) == Content::unknown);
  header = good_header();
  header.e_type = ET_REL;
  CHECK(content_of(header) == Content::unknown);
  header = good_header();
  header.e_machine = EM_S390;
  CHECK(content_of(header) == Content::unknown);
}

TEST_CASE("the ELF interpreter is found as far as the head reaches", "[preload]") {
  const Elf64_Phdr entry = {.p_type = PT_INTERP, .p_offset = 792, .p_filesz = 28};
  Elf64_Ehdr header = good_header();
  CHECK(elf_interpreter(elf_head(header, entry)).offset == 792);
  CHECK(elf_interpreter(elf_head(header, entry)).size == 28);
  CHECK(elf_interpreter(elf_head(header)).size == 0);
  header.e_phnum = 0xffff;
  CHECK(elf_interpreter(elf_head(header)).size == 0);
  header.e_phoff = kHeadBytes - 1;
  CHECK(elf_interpreter(elf_head(header)).size == 0);
  header.e_phoff = ~0UL - 8;
  CHECK(elf_interpreter(elf_head(header)).size == 0);
}

TEST_CASE("PATH elements are tried in order, an empty one is the current directory", "[preload]") {
  CHECK(candidates("/bin:/usr/bin", "sh") == "/bin/sh /usr/bin/sh ");
  CHECK(candidates("", "sh") == "sh ");
  CHECK(candidates(":", "sh") == "sh sh ");
  CHECK(candidates("/a::b:", "sh") == "/a/sh sh b/sh sh ");
  CHECK(candidates("/a::b:./c:/d", "sh", true) == "/a/sh /d/sh ");
}

TEST_CASE("a candidate longer than PATH_MAX ends the search", "[preload]") {
  const std::string fits = "/" + letters(PATH_MAX - 5);
  CHECK(candidates(fits.c_str(), "sh") == fits + "/sh ");
  CHECK(candidates((fits + "x").c_str(), "sh") == "(too long)");
}

TEST_CASE("an unset PATH has a default", "[preload]") {
  const std::string before = getenv("PATH");
  unsetenv("PATH");
  setenv("PATHS", "/wrong", 1);
  CHECK(search_path() == std::string("/bin:/usr/bin"));
  setenv("PATH", "", 1);
  CHECK(search_path() == std::string());
  setenv("PATH", before.c_str(), 1);
}

TEST_CASE("command output is split into quoted fields", "[preload]") {
  unsetenv("IFS");
  CHECK(fields_of("a b\n") == "\"a\" \"b\"");
  CHECK(fields_of("a \n") == "\"a\" ");
  CHECK(fields_of(" a") == "\"a\"");
  CHECK(fields_of("\n\n") == "");
  CHECK(fields_of("a\n\nb\n") == "\"a\" \"b\"");
  setenv("IFS", ":", 1);
  CHECK(fields_of("a::b") == "\"a\" '' \"b\"");
  CHECK(fields_of(":a") == "'' \"a\"");
  CHECK(fields_of(":a", "x") == "x \"a\"");
  CHECK(fields_of("a b\n\n") == "\"a b\"");
  CHECK(fields_of("a\nb\n\n") == "\"a\nb\"");
  setenv("IFS", "", 1);
  CHECK(fields_of("a b\n") == "\"a b\"");
  unsetenv("IFS");
}

TEST_CASE("temporary variables are gone afterwards", "[preload]") {
  Text text;
  {
    References references;
    REQUIRE(references.add("value", text));
    REQUIRE(references.publish());
    CHECK(getenv(std::string(text.c_str()).substr(2, text.size() - 3).c_str()) ==
          std::string("value"));
  }
  CHECK(getenv(std::string(text.c_str()).substr(2, text.size() - 3).c_str()) == nullptr);
}

}  // namespace
TEST_CASE("a port is the service's if the list names it with its protocol") {
  using bind::names_port;
  using bind::Protocol;
  const char* list = "tcp:8080,udp:53,tcp:1,tcp:65535";
  CHECK(names_port(list, Protocol::tcp, 8080));
  CHECK(names_port(list, Protocol::udp, 53));
  CHECK(names_port(list, Protocol::tcp, 1));
  CHECK(names_port(list, Protocol::tcp, 65535));
  CHECK_FALSE(names_port(list, Protocol::udp, 8080));
  CHECK_FALSE(names_port(list, Protocol::tcp, 53));
  CHECK_FALSE(names_port(list, Protocol::tcp, 808));
  CHECK_FALSE(names_port(list, Protocol::tcp, 0));
  for (const char* bad : {"", ",", "tcp", "tcp:", "8080", "tcp:8080x", "tcp: 8080", "tcp:-8080",
                          "tcp:73616", "xtcp:8080", "udp:8080,,", "tcp:99999999999999999999"}) {
    CHECK_FALSE(names_port(bad, Protocol::tcp, 8080));
  }
  CHECK_FALSE(names_port(nullptr, Protocol::tcp, 8080));
}

TEST_CASE("a variable is found by its whole name") {
  char one[] = "AIRLOCK_PORTS_SOCKET=/x", two[] = "AIRLOCK_PORTS=tcp:1", three[] = "EMPTY=";
  char* environment[] = {one, two, three, nullptr};
  CHECK(std::string(bind::value_of(environment, "AIRLOCK_PORTS")) == "tcp:1");
  CHECK(std::string(bind::value_of(environment, "EMPTY")).empty());
  CHECK(bind::value_of(environment, "AIRLOCK") == nullptr);
  CHECK(bind::value_of(nullptr, "AIRLOCK_PORTS") == nullptr);
}

}  // namespace preload
