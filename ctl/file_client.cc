#include "ctl/file_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

namespace ctl {

using base::Result;

namespace {

base::Error error_of(const std::string& path, const wire::FileFailed& failure) {
  using Why = wire::FileFailed::Why;
  if (failure.why == Why::not_a_file) return {path, 0, "it is no regular file"};
  if (failure.why == Why::condition) return {path, 0, "it has changed"};
  return {path, failure.error, {}};
}

tl::unexpected<base::Error> not_understood() {
  return base::failure("understand what the context says", EBADMSG);
}

}  // namespace

Result<FileClient> FileClient::start(const std::string& runtime_dir, const std::string& context,
                                     bool absolute_only) {
  auto job = Client::connect(runtime_dir);
  if (!job) return tl::unexpected<base::Error>(job.error());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::os_error("make a socket");
  }
  base::UniqueFd ours(ends[0]);
  const base::UniqueFd theirs(ends[1]);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  // It notices by itself that we have gone, and leaves nothing half done.
  const wire::FileJob order{context, absolute_only ? "/" : "", mask, wire::OnDisconnect::keep};
  const int passed[] = {theirs.borrow()};
  auto sent = wire::send_message(job->socket(), order, passed);
  if (!sent) return tl::unexpected<base::Error>(sent.error());
  return FileClient(std::move(*job), std::move(ours));
}

/// Said by whoever should have started or watched it.
base::Error FileClient::why_it_ended() {
  wire::Receiver receiver;
  for (;;) {
    auto frame = receiver.receive(job_.socket());
    if (!frame || !*frame) return {"the context or the daemon ended", 0, {}};
    if ((*frame)->type == wire::MessageType::not_started) {
      const auto refusal = wire::decode<wire::NotStarted>((*frame)->payload);
      return {refusal ? refusal->message : "it was refused", 0, {}};
    }
    if ((*frame)->type == wire::MessageType::exited) return {"the file program was ended", 0, {}};
  }
}

Result<wire::Frame> FileClient::next(const std::string& path) {
  auto frame = receiver_.receive(socket_.borrow());
  if (!frame || !*frame) return tl::unexpected<base::Error>(why_it_ended());
  if ((*frame)->type != wire::MessageType::file_failed) return std::move(**frame);
  const auto failure = wire::decode<wire::FileFailed>((*frame)->payload);
  if (!failure) return not_understood();
  return tl::unexpected<base::Error>(error_of(path, *failure));
}

template <class Message>
Result<Message> FileClient::next_as(const std::string& path) {
  auto frame = next(path);
  if (!frame) return tl::unexpected<base::Error>(frame.error());
  if (frame->type != wire::type_of<Message>()) return not_understood();
  return wire::decode<Message>(frame->payload);
}

Result<wire::FileEntry> FileClient::stat(const std::string& path) {
  wire::FileRequest request{.operation = wire::FileRequest::Operation::stat, .path = path};
  request.follows = true;
  (void)wire::send_message(socket_.borrow(), request);
  auto entry = next_as<wire::FileEntry>(path);
  if (!entry) return entry;
  if (auto end = next_as<wire::FileEnd>(path); !end)
    return tl::unexpected<base::Error>(end.error());
  return entry;
}

Result<std::vector<wire::FileEntry>> FileClient::list(const std::string& path) {
  wire::FileRequest request{.operation = wire::FileRequest::Operation::list, .path = path};
  request.is_recursive = true;
  request.limit = ~std::uint32_t{0};
  (void)wire::send_message(socket_.borrow(), request);
  std::vector<wire::FileEntry> entries;
  for (;;) {
    auto frame = next(path);
    if (!frame) return tl::unexpected<base::Error>(frame.error());
    if (frame->type == wire::MessageType::file_end) {
      const auto end = wire::decode<wire::FileEnd>(frame->payload);
      if (!end) return not_understood();
      if (end->is_truncated) return base::failure(path, EIO, "not all of it could be read");
      std::ranges::sort(entries, {}, &wire::FileEntry::name);
      return entries;
    }
    auto entry = wire::decode<wire::FileEntry>(frame->payload);
    if (frame->type != wire::MessageType::file_entry || !entry) return not_understood();
    entries.push_back(std::move(*entry));
  }
}

Result<void> FileClient::get(const std::string& path,
                             const std::function<Result<void>(const wire::FileEntry&)>& begin,
                             const std::function<Result<void>(std::string_view)>& take) {
  const wire::FileRequest request{.operation = wire::FileRequest::Operation::get, .path = path};
  (void)wire::send_message(socket_.borrow(), request);
  const auto head = next_as<wire::FileHead>(path);
  if (!head) return tl::unexpected<base::Error>(head.error());
  if (auto begun = begin(head->entry); !begun) return begun;
  wire::FileRange range;
  if (head->has_length) range.length = head->length;
  (void)wire::send_message(socket_.borrow(), range);
  for (;;) {
    auto frame = next(path);
    if (!frame) return tl::unexpected<base::Error>(frame.error());
    if (frame->type == wire::MessageType::file_end) return {};
    const auto data = wire::decode<wire::FileData>(frame->payload);
    if (frame->type != wire::MessageType::file_data || !data) return not_understood();
    if (auto taken = take(data->bytes); !taken) return taken;
  }
}

bool FileClient::has_answer() const {
  pollfd socket{socket_.borrow(), POLLIN, 0};
  return ::poll(&socket, 1, 0) > 0;
}

// What it says meanwhile can only be that it has failed.
Result<void> FileClient::send_contents(const std::string& path,
                                       const std::function<Result<std::string>()>& next) {
  while (!has_answer()) {
    auto bytes = next();
    // Without the end that tells it to, nothing is made of what has come.
    if (!bytes) {
      ::shutdown(socket_.borrow(), SHUT_WR);
      return base::failure(bytes.error().operation, bytes.error().code);
    }
    auto sent = bytes->empty() ? wire::send_message(socket_.borrow(), wire::FileEnd{})
                               : wire::send_message(socket_.borrow(), wire::FileData{*bytes});
    if (!sent || bytes->empty()) return {};
  }
  auto early = this->next(path);
  // So that it listens again.
  (void)wire::send_message(socket_.borrow(), wire::FileEnd{});
  if (!early) return tl::unexpected<base::Error>(early.error());
  return not_understood();
}

Result<void> FileClient::put(const wire::FileRequest& request,
                             const std::function<Result<std::string>()>& next) {
  (void)wire::send_message(socket_.borrow(), request);
  const auto ready = next_as<wire::FileReady>(request.path);
  if (!ready) return tl::unexpected<base::Error>(ready.error());
  if (auto sent = send_contents(request.path, next); !sent) return sent;
  const auto entry = next_as<wire::FileEntry>(request.path);
  if (!entry) return tl::unexpected<base::Error>(entry.error());
  const auto end = next_as<wire::FileEnd>(request.path);
  if (!end) return tl::unexpected<base::Error>(end.error());
  return {};
}

Result<void> FileClient::change(const wire::FileRequest& request) {
  (void)wire::send_message(socket_.borrow(), request);
  const auto end = next_as<wire::FileEnd>(request.path);
  if (!end) return tl::unexpected<base::Error>(end.error());
  return {};
}

}  // namespace ctl
