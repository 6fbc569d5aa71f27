#include <nlohmann/json.hpp>

#include "api/file_answers.h"
#include "api/file_transfer.h"
#include "wire/file_tag.h"
#include "wire/limits.h"

namespace api {
namespace {

/// One client that reads one file. Held by its job.
class Download : public std::enable_shared_from_this<Download> {
 public:
  Download(std::shared_ptr<Exchange> exchange, wire::FileRequest request)
      : exchange_(std::move(exchange)), request_(std::move(request)) {}

  void start(App& app) {
    const auto self = shared_from_this();
    job_ = FileJob::start(app, *exchange_, request_, false,
                          {.on_message = [self](const wire::Frame& frame) { self->take(frame); },
                           .on_failed = [self](const Problem& why) { self->fail(why); }});
    job_->expect(kFileStep);
  }

 private:
  void take(const wire::Frame& frame) {
    const auto self = shared_from_this();
    if (frame.type == wire::MessageType::file_head && exchange_) {
      if (const auto head = wire::decode<wire::FileHead>(frame.payload)) return answer(*head);
    } else if (frame.type == wire::MessageType::file_data && body_) {
      if (auto data = wire::decode<wire::FileData>(frame.payload)) return pass_on(data->bytes);
    } else if (frame.type == wire::MessageType::file_end && body_) {
      if (!length_ || left_ == 0) return finish();
    }
    fail(problem("io-error"));
  }

  void answer(const wire::FileHead& head) {
    const std::string tag = wire::file_tag(head.entry);
    Response response{200, "application/octet-stream", "", {{"ETag", tag}}};
    if (!request_.if_match.empty() && !wire::is_named(request_.if_match, tag)) {
      return fail(problem("precondition-failed"));
    }
    if (wire::is_named(request_.if_none_match, tag)) {
      response.status = 304;
      response.type.clear();
      return reply(std::move(response));
    }
    RangeAnswer range{200, 0, wire::FileRange{}.length};
    if (head.has_length) {
      response.headers.emplace_back("Accept-Ranges", "bytes");
      range = answer_range(wanted_range(), head.length);
      response.length = range.length;
    }
    if (range.status == 416) return refuse_range(head.length);
    response.status = range.status;
    if (range.status == 206) {
      response.headers.emplace_back("Content-Range", content_range(range, head.length));
    }
    const bool has_contents = range.length > 0 && exchange_->request().method != "HEAD";
    if (!has_contents) return reply(std::move(response));
    length_ = response.length;
    left_ = range.length;
    body_ = std::exchange(exchange_, nullptr)->start(std::move(response));
    job_->send(wire::FileRange{range.offset, range.length});
    job_->expect(kFileStep);
  }

  /// With If-Range it would have to be the same file: the whole one is always right.
  std::string wanted_range() const {
    const auto& request = exchange_->request();
    return request.header("if-range").empty() ? request.header("range") : "";
  }

  static std::string content_range(const RangeAnswer& range, std::uint64_t length) {
    return "bytes " + std::to_string(range.offset) + "-" +
           std::to_string(range.offset + range.length - 1) + "/" + std::to_string(length);
  }

  void refuse_range(std::uint64_t length) {
    auto response = to_response(problem("range-not-satisfiable"), exchange_->request().id);
    response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(length));
    reply(std::move(response));
  }

  void reply(Response response) {
    job_->close();
    std::exchange(exchange_, nullptr)->reply(std::move(response));
  }

  void pass_on(std::string& bytes) {
    if (bytes.empty() || bytes.size() > left_) return fail(problem("io-error"));
    left_ -= bytes.size();
    job_->hold();
    job_->expect_nothing();
    body_->write(std::move(bytes), [self = shared_from_this()] {
      self->job_->expect(kFileStep);
      self->job_->go_on();
    });
  }

  void finish() {
    job_->close();
    std::exchange(body_, nullptr)->end();
  }

  // A client that has a part of it must see that it is not all.
  void fail(const Problem& why) {
    const auto self = shared_from_this();
    job_->close();
    if (const auto exchange = std::exchange(exchange_, nullptr)) refuse(*exchange, why);
    if (const auto body = std::exchange(body_, nullptr)) body->cut();
  }

  std::shared_ptr<Exchange> exchange_;
  wire::FileRequest request_;
  std::shared_ptr<FileJob> job_;
  std::shared_ptr<BodyStream> body_;
  std::optional<std::uint64_t> length_;  ///< as it was told
  std::uint64_t left_ = 0;
};

}  // namespace

void download_file(App& app, const std::shared_ptr<Exchange>& exchange,
                   const wire::FileRequest& request) {
  std::make_shared<Download>(exchange, request)->start(app);
}

}  // namespace api
