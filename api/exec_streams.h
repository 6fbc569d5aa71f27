#pragma once

#include <vector>

#include "api/exec_order.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace api {

/// The descriptors a program gets, and their other ends. With a terminal there are none of both.
struct ExecStreams {
  std::vector<base::UniqueFd> theirs;  ///< 0, 1 and 2 of the program
  base::UniqueFd input;                ///< unless its input is to be written
  base::UniqueFd out;
  base::UniqueFd err;
};

/// EMFILE and the like.
base::Result<ExecStreams> make_streams(const ExecOrder& order);

}  // namespace api
