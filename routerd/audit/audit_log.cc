#include "routerd/audit/audit_log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace routerd::audit {

using base::Result;
using json = nlohmann::json;

namespace {

constexpr std::size_t kMostFiles = 1000;
constexpr std::size_t kLongestFile = std::size_t{4} << 30;

/// RFC 3339, UTC, milliseconds.
std::string now_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  char day[32], text[48];
  ::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1'000'000);
  return text;
}

/// The last line of a file, without the newline; nothing if it ends within a line or is empty.
std::optional<std::string> last_line(const std::string& path) {
  auto file = base::open_file(path, O_RDONLY);
  struct stat info {};
  if (!file || ::fstat(file->borrow(), &info) != 0) return std::nullopt;
  constexpr off_t kLongestLine = 1 << 20;
  ::lseek(file->borrow(), std::max<off_t>(0, info.st_size - kLongestLine), SEEK_SET);
  auto text = base::read_all(file->borrow(), kLongestLine + 1);
  if (!text || !text->ends_with('\n')) return std::nullopt;
  text->pop_back();
  const auto newline = text->rfind('\n');
  return newline == std::string::npos ? *text : text->substr(newline + 1);
}

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(Options options) {
  std::error_code ignored;  // mkdir(2) tells
  std::filesystem::create_directories(std::filesystem::path(options.folder).parent_path(), ignored);
  if (::mkdir(options.folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::os_error("create the audit log's folder " + options.folder);
  }
  if (::chmod(options.folder.c_str(), 0700) != 0) return base::os_error("chmod " + options.folder);
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(options)));
  if (auto resumed = log->resume(); !resumed) return tl::unexpected<base::Error>(resumed.error());
  // Signals are the daemon's thread's.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  log->writer_ = std::thread([log = log.get()] { log->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return log;
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  if (writer_.joinable()) writer_.join();
  if (file_) ::fdatasync(file_.borrow());
}

/// A line that was cut off, by a machine that lost its power, stays for people to see; the chain
/// goes on in a new file.
Result<void> AuditLog::resume() {
  struct stat info {};
  // A link is for open_file() to refuse.
  if (::lstat(path().c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    const auto line = last_line(path());
    const auto head = line ? head_of(*line) : std::nullopt;
    if (!head) {
      return base::failure("continue the audit log " + path(), EBADMSG,
                           "it does not end with a record: move it away ('airlock audit verify' "
                           "tells more)");
    }
    written_ = *head;
  } else if (const auto line = last_line(path() + ".1")) {
    if (const auto head = head_of(*line)) written_ = *head;
  }
  head_ = written_;
  return open_file();
}

Result<void> AuditLog::open_file() {
  auto file = base::open_file(path(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (!file) return tl::unexpected<base::Error>(file.error());
  struct stat info {};
  if (::fstat(file->borrow(), &info) != 0) return base::os_error("fstat " + path());
  if (::fchmod(file->borrow(), 0600) != 0) return base::os_error("chmod " + path());
  file_ = std::move(*file);
  size_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

void AuditLog::rotate() {
  if (file_) ::fdatasync(file_.borrow());
  file_.reset();
  for (unsigned number = options_.keep; number > 0; --number) {
    const std::string older = path() + "." + std::to_string(number);
    const std::string newer = number == 1 ? path() : path() + "." + std::to_string(number - 1);
    ::rename(newer.c_str(), older.c_str());
  }
  if (options_.keep == 0) ::unlink(path().c_str());
}

void AuditLog::add(const char* event, json record) {
  record["event"] = event;
  record["time"] = now_text();
  const auto followers = followers_;  // one may leave meanwhile
  for (const auto& [number, follower] : followers) follower(record);
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= kMaxQueued) {
      ++dropped_;
      ++untold_;
      return;
    }
    queue_.push_back(std::move(record));
  }
  changed_.notify_one();
}

std::uint64_t AuditLog::follow(Follower follower) {
  followers_.emplace(next_follower_, std::move(follower));
  return next_follower_++;
}

void AuditLog::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
    if (queue_.empty()) return;
    auto records = std::exchange(queue_, {});
    if (untold_ != 0) {
      records.push_front(
          {{"event", "audit.dropped"}, {"time", now_text()}, {"count", std::exchange(untold_, 0)}});
    }
    lock.unlock();
    write(std::move(records));
    lock.lock();
  }
}

/// All or nothing: half a line would look like a forged one.
bool AuditLog::write_text(const std::string& text) {
  const auto failed = [this](const base::Error& error) {
    if (file_) (void)!::ftruncate(file_.borrow(), static_cast<off_t>(size_));
    const std::lock_guard lock(mutex_);
    last_error_ = error.message();
    return false;
  };
  if (!file_) {
    if (auto opened = open_file(); !opened) return failed(opened.error());
  }
  if (auto done = base::write_all(file_.borrow(), text); !done) return failed(done.error());
  size_ += text.size();
  return true;
}

void AuditLog::write(std::deque<json> records) {
  const std::size_t count = records.size();
  Head head = written_;
  std::string text;
  if (file_ && size_ >= options_.max_bytes) rotate();
  if (!file_ || size_ == 0) {
    if (!file_ && !open_file()) size_ = 0;
    text = append_to_chain(
        head, {{"event", "audit.opened"}, {"time", now_text()}, {"previous", head.hash}});
  }
  for (auto& record : records) text += append_to_chain(head, std::move(record));
  const bool is_written = write_text(text);
  const std::lock_guard lock(mutex_);
  if (is_written) {
    head_ = written_ = head;
  } else {
    dropped_ += count;
    untold_ += count;
  }
}

Head AuditLog::head() const {
  const std::lock_guard lock(mutex_);
  return head_;
}

std::uint64_t AuditLog::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string AuditLog::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (std::size_t number = kMostFiles; number > 0; --number) {
    const std::string path = folder + "/audit.jsonl." + std::to_string(number);
    if (::access(path.c_str(), F_OK) == 0) files.push_back(path);
  }
  const std::string path = folder + "/audit.jsonl";
  if (files.empty() || ::access(path.c_str(), F_OK) == 0) files.push_back(path);
  return files;
}

Result<ChainCheck> verify(const std::string& folder, const Head& known) {
  ChainCheck check;
  for (const auto& path : files_in(folder)) {
    auto text = base::read_file(path, kLongestFile);
    if (!text) return tl::unexpected<base::Error>(text.error());
    check.add_file(path, *text);
  }
  check.expect(known);
  return check;
}

}  // namespace routerd::audit
