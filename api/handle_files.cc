#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/file_answers.h"
#include "api/file_transfer.h"
#include "api/handlers.h"

namespace api {

using nlohmann::json;
using Operation = wire::FileRequest::Operation;

namespace {

constexpr std::uint32_t kUsualEntries = 10'000;
constexpr std::uint32_t kMostEntries = 100'000;
constexpr std::size_t kMostEntryBytes = 32u << 20;  ///< of names and targets

/// An operation whose whole answer is told at once. Held by its job.
class FileAnswer : public std::enable_shared_from_this<FileAnswer> {
 public:
  using Tell = std::function<Response(std::vector<wire::FileEntry> entries, bool is_truncated)>;
  FileAnswer(std::shared_ptr<Exchange> exchange, wire::FileRequest request, Tell tell)
      : exchange_(std::move(exchange)), request_(std::move(request)), tell_(std::move(tell)) {}

  void start(App& app) {
    const auto self = shared_from_this();
    job_ = FileJob::start(app, *exchange_, request_, false,
                          {.on_message = [self](const wire::Frame& frame) { self->take(frame); },
                           .on_failed = [self](const Problem& why) { self->fail(why); }});
    const bool is_quick = request_.operation == Operation::stat;
    job_->expect(is_quick ? kFileStep : kLongFileStep);
  }

 private:
  void take(const wire::Frame& frame) {
    const auto self = shared_from_this();
    if (frame.type == wire::MessageType::file_entry) {
      auto entry = wire::decode<wire::FileEntry>(frame.payload);
      if (entry && entries_.size() < std::max(request_.limit, 1u)) {
        bytes_ += entry->name.size() + entry->target.size();
        const bool is_too_much = bytes_ > kMostEntryBytes;
        is_truncated_ |= is_too_much;
        if (!is_too_much) entries_.push_back(std::move(*entry));
        return is_too_much ? answer() : void();
      }
    } else if (frame.type == wire::MessageType::file_end) {
      if (const auto end = wire::decode<wire::FileEnd>(frame.payload)) {
        is_truncated_ |= end->is_truncated;
        return answer();
      }
    }
    fail(problem("io-error"));
  }

  void answer() {
    job_->close();
    if (request_.operation == Operation::stat && entries_.empty()) return fail(problem("io-error"));
    const auto exchange = std::exchange(exchange_, nullptr);
    if (exchange) exchange->reply(tell_(std::move(entries_), is_truncated_));
  }

  void fail(const Problem& why) {
    const auto self = shared_from_this();
    job_->close();
    if (const auto exchange = std::exchange(exchange_, nullptr)) refuse(*exchange, why);
  }

  std::shared_ptr<Exchange> exchange_;
  wire::FileRequest request_;
  Tell tell_;
  std::shared_ptr<FileJob> job_;
  std::vector<wire::FileEntry> entries_;
  std::size_t bytes_ = 0;
  bool is_truncated_ = false;
};

Response nothing_to_tell(const std::vector<wire::FileEntry>&, bool) { return {204, "", "", {}}; }

void answer(App& app, const std::shared_ptr<Exchange>& exchange, wire::FileRequest request,
            FileAnswer::Tell tell = nothing_to_tell) {
  std::make_shared<FileAnswer>(exchange, std::move(request), std::move(tell))->start(app);
}

/// The fields of an address; what is wrong is collected.
class Query {
 public:
  explicit Query(const Request& request) : request_(request) {}

  std::string path() {
    const auto& path = request_.query_value("path");
    if (!is_path(path)) wrong("path: expected a path of at most 4095 bytes");
    return path;
  }

  bool flag(const std::string& name) {
    const auto& text = request_.query_value(name);
    if (!text.empty() && text != "true" && text != "false")
      wrong(name + ": expected true or false");
    return text == "true";
  }

  void mode(wire::FileRequest& request) {
    const auto& text = request_.query_value("mode");
    if (text.empty()) return;
    const auto mode = parse_mode(text);
    if (!mode) wrong("mode: expected octal digits such as 0644");
    request.has_mode = true;
    request.mode = mode.value_or(0);
  }

  std::uint32_t limit() {
    const auto& text = request_.query_value("limit");
    if (text.empty()) return kUsualEntries;
    if (text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos) {
      wrong("limit: expected 1 to 100000");
      return kUsualEntries;
    }
    return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::stoul(text)), 1, kMostEntries);
  }

  void conditions(wire::FileRequest& request) {
    request.if_match = tags("if-match", false);
    request.if_none_match = tags("if-none-match", true);
  }

  /// Answers by what is wrong; true if something was.
  bool refuses(Exchange& exchange) const {
    if (!wrong_.empty()) refuse(exchange, problem("invalid-request", wrong_));
    return !wrong_.empty();
  }

 private:
  void wrong(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
  }

  wire::StringList tags(const std::string& name, bool is_weak) {
    const auto& field = request_.header(name);
    if (field.empty()) return {};
    auto parsed = parse_tags(field, is_weak);
    if (!parsed) wrong(name + ": expected entity tags (RFC 9110, 8.8.3)");
    return parsed ? std::move(*parsed) : wire::StringList();
  }

  const Request& request_;
  std::string wrong_;
};

}  // namespace

void get_file(App& app, const std::shared_ptr<Exchange>& exchange) {
  Query query(exchange->request());
  wire::FileRequest request{.operation = Operation::get, .path = query.path()};
  query.conditions(request);
  if (!query.refuses(*exchange)) download_file(app, exchange, request);
}

void put_file(App& app, const std::shared_ptr<Exchange>& exchange) {
  Query query(exchange->request());
  wire::FileRequest request{.operation = Operation::put, .path = query.path()};
  query.mode(request);
  query.conditions(request);
  request.with_parents = query.flag("mkdirs");
  if (!exchange->request().header("content-range").empty()) {
    return refuse(*exchange, problem("invalid-request", "a file is written as a whole"));
  }
  if (!query.refuses(*exchange)) upload_file(app, exchange, request);
}

void remove_file(App& app, const std::shared_ptr<Exchange>& exchange) {
  Query query(exchange->request());
  wire::FileRequest request{.operation = Operation::remove, .path = query.path()};
  request.is_recursive = query.flag("recursive");
  query.conditions(request);
  if (!query.refuses(*exchange)) answer(app, exchange, std::move(request));
}

void stat_file(App& app, const std::shared_ptr<Exchange>& exchange) {
  Query query(exchange->request());
  wire::FileRequest request{.operation = Operation::stat, .path = query.path()};
  request.follows = query.flag("follow");
  if (query.refuses(*exchange)) return;
  answer(app, exchange, std::move(request),
         [](const auto& entries, bool) { return json_response(to_json(entries.front())); });
}

void list_files(App& app, const std::shared_ptr<Exchange>& exchange) {
  Query query(exchange->request());
  wire::FileRequest request{.operation = Operation::list, .path = query.path()};
  request.is_recursive = query.flag("recursive");
  request.limit = query.limit();
  if (query.refuses(*exchange)) return;
  answer(app, exchange, std::move(request), [](auto entries, bool is_truncated) {
    std::ranges::sort(entries, {}, &wire::FileEntry::name);
    // One by one: as objects all of them would be many times as large.
    std::string text = "{\"items\":[";
    for (const auto& entry : entries) {
      if (text.back() == '}') text += ',';
      text += to_text(to_json(entry));
    }
    text += is_truncated ? "],\"isTruncated\":true}" : "],\"isTruncated\":false}";
    return Response{200, "application/json", std::move(text), {}};
  });
}

void make_folder(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  wire::FileRequest request{.operation = Operation::make_folder, .path = read_path(fields, "path")};
  request.with_parents = fields.boolean("parents").value_or(false);
  if (const auto text = fields.text("mode")) {
    const auto mode = parse_mode(*text);
    if (!mode) fields.fail("mode", "expected octal digits such as 0755");
    request.has_mode = true;
    request.mode = mode.value_or(0);
  }
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  answer(app, exchange, std::move(request));
}

void move_file(App& app, const std::shared_ptr<Exchange>& exchange) {
  auto body = read_body(exchange->request());
  if (!body) return refuse(*exchange, body.error());
  Fields fields(*body);
  wire::FileRequest request{.operation = Operation::move, .path = read_path(fields, "from")};
  request.to = read_path(fields, "to");
  request.replaces = fields.boolean("overwrite").value_or(false);
  request.with_parents = fields.boolean("parents").value_or(false);
  if (auto wrong = fields.done()) return refuse(*exchange, *wrong);
  answer(app, exchange, std::move(request));
}

}  // namespace api
