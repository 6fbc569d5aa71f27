#pragma once

#include "contexts/files/client.h"
#include "contexts/files/outcome.h"

// What airlock-files does, one function for each operation of wire::FileRequest. All block for as
// long as the file system takes; the kernel decides what this process may do. Each tells the client
// its results; FileEnd and FileFailed are sent by the caller.
namespace contexts::files {

// read.cc
/// ESTALE: the file became shorter while it was read.
Outcome<void> get(Client& client, const wire::FileRequest& request);

// put.cc
/// All or nothing: a client that goes away leaves the old file, and no trace of the new one.
Outcome<void> put(Client& client, const wire::FileRequest& request);

// tree.cc
/// True if there was more than the limit, or what could not be looked into.
Outcome<bool> list(Client& client, const wire::FileRequest& request);
Outcome<void> remove(const wire::FileRequest& request);

// change.cc
Outcome<void> stat(Client& client, const wire::FileRequest& request);
Outcome<void> make_folder(const wire::FileRequest& request);
Outcome<void> move(const wire::FileRequest& request);
Outcome<void> link(const wire::FileRequest& request);
Outcome<void> set_mode(const wire::FileRequest& request);

}  // namespace contexts::files
