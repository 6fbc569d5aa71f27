#pragma once

#include <optional>

#include "base/result.h"
#include "wire/channel.h"

namespace api {

/// The next frame of a job's socket (STREAM), with copies of its descriptors, left where it is:
/// whoever takes the job over sees it, too. Nothing if there is no whole frame for now. ECONNRESET:
/// closed. EINPROGRESS: only part of one is there yet. The same frame comes again until
/// drop_frame().
base::Result<std::optional<wire::Frame>> peek_frame(int socket);

/// Takes away the frame that peek_frame() gave.
base::Result<void> drop_frame(int socket);

}  // namespace api
