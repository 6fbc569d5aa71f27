#pragma once

#include <memory>

#include "api/file_job.h"

// Contents of files, as fast as both sides take them and with little of them in memory.
namespace api {

/// Answers by the file's contents, or by what the conditions of the request say.
void download_file(App& app, const std::shared_ptr<Exchange>& exchange,
                   const wire::FileRequest& request);

/// Makes the file of the request's body.
void upload_file(App& app, const std::shared_ptr<Exchange>& exchange,
                 const wire::FileRequest& request);

/// How long airlock-files may take for a step.
constexpr std::chrono::seconds kFileStep{60};
/// For all that is below a folder, or until all is written.
constexpr std::chrono::seconds kLongFileStep{600};

}  // namespace api
