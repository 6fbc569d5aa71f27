#include <nlohmann/json.hpp>

#include "api/file_answers.h"
#include "api/file_transfer.h"
#include "wire/file_tag.h"

namespace api {
namespace {

/// Bytes that may wait for the program: the body is read no faster.
constexpr std::size_t kMostWaiting = 256u << 10;

/// One client that writes one file. Held by its job.
class Upload : public std::enable_shared_from_this<Upload> {
 public:
  explicit Upload(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  void start(App& app, const wire::FileRequest& request) {
    const auto self = shared_from_this();
    job_ = FileJob::start(app, *exchange_, request, true,
                          {.on_message = [self](const wire::Frame& frame) { self->take(frame); },
                           .on_failed = [self](const Problem& why) { self->fail(why); },
                           .on_room =
                               [self] {
                                 if (std::exchange(self->is_full_, false)) self->read();
                               }});
    job_->expect(kFileStep);
  }

 private:
  void take(const wire::Frame& frame) {
    const auto self = shared_from_this();
    if (frame.type == wire::MessageType::file_ready && !is_ready_) {
      if (const auto ready = wire::decode<wire::FileReady>(frame.payload)) {
        is_ready_ = true;
        existed_ = ready->exists;
        return read();
      }
    } else if (frame.type == wire::MessageType::file_entry && is_complete_) {
      if (auto entry = wire::decode<wire::FileEntry>(frame.payload)) {
        entry_ = std::move(*entry);
        return;
      }
    } else if (frame.type == wire::MessageType::file_end && entry_) {
      return answer();
    }
    fail(problem("io-error"));
  }

  void read() {
    if (!exchange_) return;
    job_->expect_nothing();
    exchange_->read_part(
        [self = shared_from_this()](Checked<std::string> part) { self->pass_on(std::move(part)); });
  }

  void pass_on(Checked<std::string> part) {
    if (!exchange_) return;
    if (!part) return fail(part.error());
    if (part->empty()) {
      is_complete_ = true;
      job_->send(wire::FileEnd{});
      return job_->expect(kLongFileStep);
    }
    job_->send(wire::FileData{std::move(*part)});
    is_full_ = job_->waiting() >= kMostWaiting;
    if (!is_full_) return read();
    job_->expect(kFileStep);
  }

  void answer() {
    job_->close();
    auto response = json_response(to_json(*entry_), existed_ ? 200 : 201);
    response.headers.emplace_back("ETag", wire::file_tag(*entry_));
    std::exchange(exchange_, nullptr)->reply(std::move(response));
  }

  void fail(const Problem& why) {
    const auto self = shared_from_this();
    job_->close();
    if (const auto exchange = std::exchange(exchange_, nullptr)) refuse(*exchange, why);
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<FileJob> job_;
  std::optional<wire::FileEntry> entry_;
  bool existed_ = false;
  bool is_ready_ = false;
  bool is_complete_ = false;
  bool is_full_ = false;
};

}  // namespace

void upload_file(App& app, const std::shared_ptr<Exchange>& exchange,
                 const wire::FileRequest& request) {
  std::make_shared<Upload>(exchange)->start(app, request);
}

}  // namespace api
