#include <unistd.h>

#include <algorithm>

#include "contexts/files/operations.h"
#include "contexts/files/place.h"
#include "wire/limits.h"

namespace contexts::files {
namespace {

/// Reads at most `size` bytes; fewer only at the file's end.
Outcome<std::string> read_some(int file, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(file, bytes.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_failed();
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

/// A file whose first bytes are here already. What is small is so told by its true length: that of
/// a file in /proc or /sys is not what stat(2) says.
class Source {
 public:
  explicit Source(base::UniqueFd file) : file_(std::move(file)) {}

  Outcome<wire::FileHead> begin(const std::string& name) {
    struct stat info {};
    if (::fstat(file_.borrow(), &info) != 0) return os_failed();
    wire::FileHead head{entry_of(-1, name, info)};
    auto first = read_some(file_.borrow(), wire::kMaxFileData);
    if (!first) return tl::unexpected<wire::FileFailed>(first.error());
    first_ = std::move(*first);
    is_whole_ = first_.size() < wire::kMaxFileData;
    head.has_length = is_whole_ || head.entry.size >= first_.size();
    head.length = is_whole_ ? first_.size() : head.entry.size;
    return head;
  }

  /// From here on.
  Outcome<void> seek(std::uint64_t offset) {
    offset_ = offset;
    if (is_whole_ || offset < first_.size()) return {};
    if (::lseek(file_.borrow(), static_cast<off_t>(offset), SEEK_SET) < 0) return os_failed();
    return {};
  }

  /// At most `size` bytes, none at the end.
  Outcome<std::string> next(std::size_t size) {
    if (offset_ >= first_.size() && !is_whole_) return read_some(file_.borrow(), size);
    const std::size_t from =
        static_cast<std::size_t>(std::min<std::uint64_t>(offset_, first_.size()));
    std::string bytes = first_.substr(from, size);
    offset_ += bytes.size();
    return bytes;
  }

 private:
  base::UniqueFd file_;
  std::string first_;
  bool is_whole_ = false;
  std::uint64_t offset_ = 0;  ///< while it is within first_
};

}  // namespace

Outcome<void> get(Client& client, const wire::FileRequest& request) {
  auto file = open_to_read(request.path);
  if (!file) return tl::unexpected<wire::FileFailed>(file.error());
  Source source(std::move(*file));
  const auto head = source.begin(last_part(request.path));
  if (!head) return tl::unexpected<wire::FileFailed>(head.error());
  client.send(*head);
  const auto range = client.next_as<wire::FileRange>();
  if (!range) return {};
  if (auto sought = source.seek(range->offset); !sought) return sought;
  std::uint64_t left = range->length;
  while (left > 0 && !client.is_gone()) {
    auto bytes =
        source.next(static_cast<std::size_t>(std::min<std::uint64_t>(left, wire::kMaxFileData)));
    if (!bytes) return tl::unexpected<wire::FileFailed>(bytes.error());
    if (bytes->empty()) break;
    left -= bytes->size();
    client.send(wire::FileData{std::move(*bytes)});
  }
  const bool is_promised = head->has_length && range->offset <= head->length &&
                           range->length <= head->length - range->offset;
  if (is_promised && left > 0) return failed(ESTALE);
  return {};
}

}  // namespace contexts::files
