#pragma once

#include <functional>

namespace ctl {

/// Runs `body` and returns its exit code. As PID 1, of a container for instance, it does so in a
/// child and meanwhile does what PID 1 has to: reaps every orphan and forwards the signals that are
/// sent to it, which the kernel would otherwise drop. A child that dies by signal N gives 128+N.
int as_first_process(const std::function<int()>& body);

}  // namespace ctl
