// airlock cp: files into and out of a context.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/file.h"
#include "ctl/commands.h"
#include "ctl/exec_client.h"
#include "ctl/file_client.h"
#include "ctl/local_tree.h"
#include "ctl/print.h"
#include "wire/limits.h"

namespace ctl {
namespace {

using base::Result;
using Operation = wire::FileRequest::Operation;
namespace fs = std::filesystem;

/// "CTX:PATH", or a path here.
struct Side {
  std::string context;  ///< empty: here
  std::string path;
};

/// A path here that looks so begins with "./".
Side side_of(const std::string& text) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, std::min(colon, text.size()));
  const bool is_name =
      !name.empty() && name[0] >= 'a' && name[0] <= 'z' &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
  if (colon == std::string::npos || !is_name) return {"", text};
  const std::string path = text.substr(colon + 1);
  return {name, path.empty() ? "." : path};
}

/// What a copy of `path` is called in a folder; empty: as the folder itself.
std::string copy_name(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = path.substr(path.rfind('/') + 1);
  return name == "." || name == ".." ? "" : name;
}

std::string below(const std::string& folder, const std::string& name) {
  if (name.empty()) return folder;
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

int failed(const base::Error& error) { return complain("cp: " + printable(error.message()), 1); }

// ---- into a context ----

class Upload {
 public:
  explicit Upload(FileClient& client) : client_(client) {}

  Result<void> file(const std::string& from, const std::string& to) {
    auto file = base::open_file(from, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat info {};
    if (!file || ::fstat(file->borrow(), &info) != 0) return base::failure(from, errno);
    if (!S_ISREG(info.st_mode)) return base::failure(from, 0, "it is no regular file");
    return contents(file->borrow(), to, info.st_mode & 0777);
  }

  /// Of a descriptor; no mode: as programs make files.
  Result<void> contents(int fd, const std::string& to, std::optional<mode_t> mode) {
    wire::FileRequest request{.operation = Operation::put, .path = to};
    request.has_mode = mode.has_value();
    request.mode = mode.value_or(0);
    return client_.put(request, [fd]() -> Result<std::string> {
      std::string bytes(wire::kMaxFileData, '\0');
      ssize_t got = -1;
      do {
        got = ::read(fd, bytes.data(), bytes.size());
      } while (got < 0 && errno == EINTR);
      if (got < 0) return base::os_error("read");
      bytes.resize(static_cast<std::size_t>(got));
      return bytes;
    });
  }

  Result<void> folder(const std::string& from, const std::string& to) {
    if (auto made = make_folder(from, to); !made) return made;
    std::error_code error;
    for (fs::recursive_directory_iterator each(from, error), end; each != end && !error;
         each.increment(error)) {
      const std::string path = each->path();
      const std::string target = below(to, path.substr(below(from, "x").size() - 1));
      if (auto copied = entry(*each, path, target); !copied) return copied;
    }
    if (error) return base::failure(from, error.value());
    return set_modes();
  }

  /// What was left out.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  Result<void> entry(const fs::directory_entry& entry, const std::string& from,
                     const std::string& to) {
    std::error_code error;
    if (entry.is_symlink(error)) {
      const auto target = base::read_link(from);
      if (!target) return tl::unexpected<base::Error>(target.error());
      wire::FileRequest request{.operation = Operation::link, .path = to, .to = *target};
      request.replaces = true;
      return client_.change(request);
    }
    if (entry.is_directory(error)) return make_folder(from, to);
    if (entry.is_regular_file(error)) return file(from, to);
    skipped_.push_back(from);
    return {};
  }

  Result<void> make_folder(const std::string& from, const std::string& to) {
    struct stat info {};
    if (::stat(from.c_str(), &info) != 0) return base::os_error(from);
    wire::FileRequest request{.operation = Operation::make_folder, .path = to};
    request.with_parents = true;
    request.has_mode = true;
    request.mode = (info.st_mode & 0777) | 0700;  // or nothing could be made in it
    if ((info.st_mode & 0700) != 0700) modes_.emplace_back(to, info.st_mode & 0777);
    return client_.change(request);
  }

  Result<void> set_modes() {
    for (auto each = modes_.rbegin(); each != modes_.rend(); ++each) {
      wire::FileRequest request{.operation = Operation::set_mode, .path = each->first};
      request.mode = each->second;
      if (auto set = client_.change(request); !set) return set;
    }
    return {};
  }

  FileClient& client_;
  std::vector<std::pair<std::string, std::uint32_t>> modes_;
  std::vector<std::string> skipped_;
};

// ---- out of a context ----

class Download {
 public:
  explicit Download(FileClient& client) : client_(client) {}

  Result<void> file(const std::string& from, LocalTree& tree, const std::string& to) {
    auto file = tree.new_file(to);
    if (!file) return tl::unexpected<base::Error>(file.error());
    auto got = client_.get(
        from, [&](const wire::FileEntry& entry) { return file->create(entry.mode & 0777); },
        [&](std::string_view bytes) { return file->write(bytes); });
    return got ? file->publish() : got;
  }

  Result<void> contents(const std::string& from, int fd) {
    return client_.get(
        from, [](const wire::FileEntry&) { return Result<void>(); },
        [fd](std::string_view bytes) { return base::write_all(fd, bytes); });
  }

  Result<void> folder(const std::string& from, LocalTree& tree) {
    const auto entries = client_.list(from);
    if (!entries) return tl::unexpected<base::Error>(entries.error());
    for (const auto& each : *entries) {
      if (auto copied = entry(from, each, tree); !copied) return copied;
    }
    for (auto each = entries->rbegin(); each != entries->rend(); ++each) {
      const bool is_open = (each->mode & 0700) == 0700;
      if (each->type != wire::FileType::folder || is_open) continue;
      if (auto set = tree.set_mode(each->name, each->mode & 0777); !set) return set;
    }
    return {};
  }

  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  Result<void> entry(const std::string& from, const wire::FileEntry& entry, LocalTree& tree) {
    switch (entry.type) {
      case wire::FileType::folder:
        return tree.make_folder(entry.name, (entry.mode & 0777) | 0700);
      case wire::FileType::symlink:
        return tree.make_link(entry.name, entry.target);
      case wire::FileType::file:
        return file(below(from, entry.name), tree, entry.name);
      default:
        skipped_.push_back(below(from, entry.name));
    }
    return {};
  }

  FileClient& client_;
  std::vector<std::string> skipped_;
};

int end_of(const Result<void>& done, const std::vector<std::string>& skipped) {
  if (!done) return failed(done.error());
  for (const auto& each : skipped) {
    complain("cp: " + printable(each) + ": left out: it is no regular file", 1);
  }
  return skipped.empty() ? 0 : 1;
}

int copy_in(FileClient& client, const Side& from, const Side& to, bool is_recursive) {
  Upload upload(client);
  const auto there = client.stat(to.path);
  const bool is_folder = there && there->type == wire::FileType::folder;
  if (from.path == "-") return end_of(upload.contents(STDIN_FILENO, to.path, {}), {});
  const std::string target = is_folder ? below(to.path, copy_name(from.path)) : to.path;
  std::error_code error;
  if (!fs::is_directory(from.path, error)) return end_of(upload.file(from.path, target), {});
  if (!is_recursive) return failed({from.path, EISDIR, "-r copies folders"});
  return end_of(upload.folder(from.path, target), upload.skipped());
}

/// Into a file that is there and is no regular one, as `cat` would: /dev/null, a FIFO.
bool is_special(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

int copy_file_out(Download& download, const Side& from, const std::string& target) {
  if (is_special(target)) {
    auto file = base::open_file(target, O_WRONLY);
    if (!file) return failed(file.error());
    return end_of(download.contents(from.path, file->borrow()), {});
  }
  const std::string folder = fs::path(target).parent_path();
  auto tree = LocalTree::open(folder.empty() ? "." : folder);
  if (!tree) return failed(tree.error());
  return end_of(download.file(from.path, *tree, fs::path(target).filename()), {});
}

int copy_out(FileClient& client, const Side& from, const Side& to, bool is_recursive) {
  Download download(client);
  if (to.path == "-") return end_of(download.contents(from.path, STDOUT_FILENO), {});
  const auto there = client.stat(from.path);
  if (!there) return failed(there.error());
  std::error_code error;
  const bool is_folder = fs::is_directory(to.path, error);
  const std::string target = is_folder ? below(to.path, copy_name(from.path)) : to.path;
  if (there->type != wire::FileType::folder) return copy_file_out(download, from, target);
  if (!is_recursive) return failed({from.path, EISDIR, "-r copies folders"});
  if (::mkdir(target.c_str(), (there->mode & 0777) | 0700) != 0 && errno != EEXIST) {
    return failed({target, errno, {}});
  }
  auto tree = LocalTree::open(target);
  if (!tree) return failed(tree.error());
  return end_of(download.folder(from.path, *tree), download.skipped());
}

}  // namespace

int cp(const Common& common, const CopyOptions& options) {
  const Side from = side_of(options.from);
  const Side to = side_of(options.to);
  if (from.context.empty() == to.context.empty()) {
    return complain("cp: expected one CONTEXT:PATH and one path here (./a:b for a name with ':')",
                    kUsage);
  }
  const Side& inside = from.context.empty() ? to : from;
  auto client = FileClient::start(common.runtime_dir, inside.context, inside.path.starts_with('/'));
  if (!client) return failed(client.error());
  return from.context.empty() ? copy_in(*client, from, to, options.is_recursive)
                              : copy_out(*client, from, to, options.is_recursive);
}

}  // namespace ctl
