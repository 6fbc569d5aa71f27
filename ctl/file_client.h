#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ctl/client.h"
#include "wire/channel.h"
#include "wire/message.h"

namespace ctl {

/// Files of a context, by airlock-files there: no path of the context is ever opened here.
/// Everything blocks. What comes is the context's own word: names may be anything.
class FileClient {
 public:
  /// Relative paths begin at the context's working folder; `absolute_only` if there are none.
  static base::Result<FileClient> start(const std::string& runtime_dir, const std::string& context,
                                        bool absolute_only);

  /// Symlinks followed.
  base::Result<wire::FileEntry> stat(const std::string& path);
  /// All below `path`, folders before what is in them. EIO: some of it could not be read.
  base::Result<std::vector<wire::FileEntry>> list(const std::string& path);
  /// Calls `begin` with what it is, then `take` with each part of its contents.
  base::Result<void> get(const std::string& path,
                         const std::function<base::Result<void>(const wire::FileEntry&)>& begin,
                         const std::function<base::Result<void>(std::string_view)>& take);
  /// `next` gives the next part of the contents, nothing at their end.
  base::Result<void> put(const wire::FileRequest& request,
                         const std::function<base::Result<std::string>()>& next);
  /// An operation that is only done or not.
  base::Result<void> change(const wire::FileRequest& request);

 private:
  FileClient(Client job, base::UniqueFd socket)
      : job_(std::move(job)), socket_(std::move(socket)) {}
  base::Result<wire::Frame> next(const std::string& path);
  template <class Message>
  base::Result<Message> next_as(const std::string& path);
  base::Result<void> send_contents(const std::string& path,
                                   const std::function<base::Result<std::string>()>& next);
  bool has_answer() const;
  base::Error why_it_ended();

  Client job_;
  base::UniqueFd socket_;
  wire::Receiver receiver_;
};

}  // namespace ctl
