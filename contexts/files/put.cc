#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "contexts/files/draft.h"
#include "contexts/files/operations.h"

namespace contexts::files {
namespace {

/// Whoever may not write to a file may not put another in its place.
Outcome<std::optional<struct stat>> find_old(const Place& place) {
  auto old = look(place);
  if (!old || !*old) return old;
  if (!S_ISREG((*old)->st_mode)) return no_file(**old);
  if (::faccessat(place.folder.borrow(), place.name.c_str(), W_OK, AT_EACCESS) != 0) {
    return os_failed();
  }
  return old;
}

Outcome<void> receive(Client& client, int file) {
  while (const auto frame = client.next()) {
    if (frame->type == wire::MessageType::file_end) return {};
    auto data = frame->type == wire::MessageType::file_data
                    ? wire::decode<wire::FileData>(frame->payload)
                    : base::failure("receive a file", EBADMSG);
    if (!data) break;
    if (auto written = base::write_all(file, data->bytes); !written) {
      return failed(written.error().code);
    }
  }
  return failed(ECANCELED);  // the client has gone: nobody is told
}

/// As a program that writes into the old file would leave it.
Outcome<void> settle(int file, const wire::FileRequest& request,
                     const std::optional<struct stat>& old) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  mode_t mode = 0666 & ~mask;
  if (old) {
    // Only root can, and only where it makes a difference.
    (void)!::fchown(file, old->st_uid, old->st_gid);
    mode = old->st_mode & 0777;
  }
  if (request.has_mode) mode = request.mode & 07777;
  if (::fchmod(file, mode) != 0) return os_failed();
  return {};
}

Outcome<void> publish(Draft& draft, const Place& place, const wire::FileRequest& request) {
  const bool is_conditional = !request.if_match.empty() || !request.if_none_match.empty();
  if (!is_conditional) return draft.publish(place, true);
  auto lock = lock_folder(place);
  if (!lock) return tl::unexpected<wire::FileFailed>(lock.error());
  if (auto met = check_conditions(request, place); !met) return met;
  auto there = look(place);
  // Nobody but us heeds the lock; to be the first is sure all the same.
  auto published = draft.publish(place, there && *there);
  if (!published && published.error().error == EEXIST) {
    return failed(wire::FileFailed::Why::condition);
  }
  return published;
}

}  // namespace

Outcome<void> put(Client& client, const wire::FileRequest& request) {
  if (request.with_parents) {
    if (auto made = make_folders_above(request.path); !made) return made;
  }
  auto place = place_to_write(request.path);
  if (!place) return tl::unexpected<wire::FileFailed>(place.error());
  if (auto met = check_conditions(request, *place); !met) return met;
  auto old = find_old(*place);
  if (!old) return tl::unexpected<wire::FileFailed>(old.error());
  auto draft = Draft::make(*place);
  if (!draft) return tl::unexpected<wire::FileFailed>(draft.error());
  client.send(wire::FileReady{old->has_value()});
  if (auto received = receive(client, draft->file()); !received) return received;
  if (auto settled = settle(draft->file(), request, *old); !settled) return settled;
  if (auto published = publish(*draft, *place, request); !published) return published;
  struct stat info {};
  if (::fstat(draft->file(), &info) != 0) return os_failed();
  client.send(entry_of(place->folder.borrow(), last_part(request.path), info));
  return {};
}

}  // namespace contexts::files
