// airlock-files: operations on files of a context. A job of the context like any other, as its user
// and in its mounts, so that the kernel decides what a client may reach. Descriptor 0 is the
// client's socket; it asks by wire::FileRequest, as often as it likes.

#include <fcntl.h>
#include <signal.h>

#include "contexts/files/operations.h"

namespace contexts::files {
namespace {

constexpr int kSocket = 0;

template <class T>
Outcome<bool> no_more(const tl::expected<T, wire::FileFailed>& done) {
  if (!done) return tl::unexpected<wire::FileFailed>(done.error());
  return false;
}

/// What FileEnd says.
Outcome<bool> serve(Client& client, const wire::FileRequest& request) {
  using Operation = wire::FileRequest::Operation;
  switch (request.operation) {
    case Operation::get:
      return no_more(get(client, request));
    case Operation::put:
      return no_more(put(client, request));
    case Operation::list:
      return list(client, request);
    case Operation::stat:
      return no_more(stat(client, request));
    case Operation::make_folder:
      return no_more(make_folder(request));
    case Operation::move:
      return no_more(move(request));
    case Operation::remove:
      return no_more(remove(request));
    case Operation::link:
      return no_more(link(request));
    case Operation::set_mode:
      return no_more(set_mode(request));
  }
  return failed(ENOSYS);
}

/// After a put that has failed its client may still be sending.
bool is_rest_of_put(const wire::Frame& frame) {
  return frame.type == wire::MessageType::file_data || frame.type == wire::MessageType::file_end;
}

void run() {
  Client client(kSocket);
  while (const auto frame = client.next()) {
    if (is_rest_of_put(*frame)) continue;
    const auto request = frame->type == wire::MessageType::file_request
                             ? wire::decode<wire::FileRequest>(frame->payload)
                             : base::failure("receive a request", EBADMSG);
    if (!request) return;
    const auto done = serve(client, *request);
    done ? client.send(wire::FileEnd{*done}) : client.send(done.error());
  }
}

}  // namespace
}  // namespace contexts::files

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  ::fcntl(0, F_SETFD, FD_CLOEXEC);
  contexts::files::run();
  return 0;
}
