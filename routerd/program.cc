#include "routerd/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "base/file.h"

namespace routerd {

FileId file_id(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return {info.st_dev, info.st_ino, info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec};
}

namespace {

constexpr int kMaxInterpreters = 5;      // BINPRM depth limit, fs/exec.c
constexpr std::size_t kLineLimit = 256;  // BINPRM_BUF_SIZE

base::Result<std::string> find_executable(const std::string& name, const std::string& search_path,
                                          const std::string& cwd) {
  std::vector<std::string> candidates;
  if (name.empty()) return base::failure("(no name)", ENOENT);
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name.front() == '/' ? name : cwd + "/" + name);
  } else {
    for (std::size_t at = 0; at <= search_path.size();) {
      const std::size_t end = std::min(search_path.find(':', at), search_path.size());
      const std::string folder = search_path.substr(at, end - at);
      candidates.push_back((folder.empty() ? cwd : folder) + "/" + name);
      at = end + 1;
    }
  }
  int error = ENOENT;
  for (const auto& candidate : candidates) {
    struct stat info {};
    if (::stat(candidate.c_str(), &info) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) error = errno;
      continue;
    }
    if (S_ISREG(info.st_mode) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    error = EACCES;
  }
  return base::failure(name, error);
}

std::string resolve(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result(resolved);
  ::free(resolved);
  return result;
}

/// The program interpreter of an ELF file; empty if it has none, or none that can be read.
std::string interpreter_of(int fd, const std::string& head) {
  Elf64_Ehdr header{};
  if (head.size() < sizeof header) return {};
  std::memcpy(&header, head.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) return {};
    if (segment.p_type != PT_INTERP) continue;
    std::string name(std::min<std::size_t>(segment.p_filesz, PATH_MAX), '\0');
    const auto length = ::pread(fd, name.data(), name.size(), static_cast<off_t>(segment.p_offset));
    name.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    name.resize(std::min(name.find('\0'), name.size()));
    return name.empty() ? "(unreadable)" : name;
  }
  return {};
}

std::string read_head(int fd) {
  std::string head(kLineLimit, '\0');
  const auto length = ::pread(fd, head.data(), head.size(), 0);
  head.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return head;
}

/// An interpreter that is executed only to execute another: env.
void add_passed(Program& program, const std::string& path) {
  program.files.push_back(path);
  const auto file = base::open_file(path, O_RDONLY);
  if (!file) return;
  const auto loader = interpreter_of(file->borrow(), read_head(file->borrow()));
  if (!loader.empty()) program.files.push_back(loader);
}

/// The words of a `#!` line: the interpreter, and those of its one argument.
std::vector<std::string> shebang_words(const std::string& head) {
  std::istringstream line(head.substr(2, head.find('\n') - 2));
  std::vector<std::string> words;
  for (std::string word; line >> word;) words.push_back(word);
  return words;
}

std::string unquoted(std::string word) {
  std::erase_if(word, [](char c) { return c == '\'' || c == '"'; });
  return word;
}

/// The program that `env [OPTION…] [NAME=VALUE…] PROGRAM` of a `#!` line runs (env(1)), or empty.
std::string program_of_env(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string word = unquoted(words[i]);
    if (word.starts_with("-S")) word.erase(0, 2);
    if (word.empty()) continue;
    const bool takes_word = word == "-u" || word == "-C" || word == "--unset" || word == "--chdir";
    if (takes_word) ++i;
    if (word.front() != '-' && word.find('=') == std::string::npos) return word;
  }
  return {};
}

}  // namespace

base::Result<Program> inspect_program(const std::string& name, const std::string& search_path,
                                      const std::string& cwd) {
  auto found = find_executable(name, search_path, cwd);
  if (!found) return tl::unexpected<base::Error>(found.error());
  Program program;
  program.found = *found;
  program.path = resolve(*found);
  std::string current = *found;
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    program.files.push_back(current);
    auto fd = base::open_file(current, O_RDONLY);
    if (!fd && fd.error().code == EACCES) {  // execute-only: nothing to be learned
      program.executable = resolve(current);
      return program;
    }
    if (!fd) return tl::unexpected<base::Error>(fd.error());
    const std::string head = read_head(fd->borrow());
    if (head.starts_with(ELFMAG)) {
      // execvp(3) would have /bin/sh read what the kernel refuses (ENOEXEC).
      if (head.size() < sizeof(Elf64_Ehdr)) return base::failure(current, ENOEXEC);
      program.executable = resolve(current);
      const auto loader = interpreter_of(fd->borrow(), head);
      program.is_musl = loader.find("/ld-musl-") != std::string::npos;
      program.is_static = loader.empty() || program.is_musl;
      if (!loader.empty()) program.files.push_back(loader);
      return program;
    }
    if (!head.starts_with("#!")) return base::failure(current, ENOEXEC);
    if (program.script.empty()) program.script = *found;
    const auto words = shebang_words(head);
    std::string next = words.empty() ? "" : words.front();
    if (next.ends_with("/env")) {
      program.env = resolve(next);
      add_passed(program, next);
      next = program_of_env(words);
    }
    auto interpreter = find_executable(next, search_path, cwd);
    if (!interpreter) return base::failure(current + ": interpreter '" + next + "'", ENOENT);
    current = *interpreter;
    program.interpreters.push_back(resolve(current));
  }
  return base::failure(name, ELOOP);
}

}  // namespace routerd
