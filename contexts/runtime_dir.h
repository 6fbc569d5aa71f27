#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "contexts/folder_remover.h"

namespace contexts {

/// The folders a daemon keeps its sockets and contexts in:
///   ROOT/control.sock        for clients
///   ROOT/view/NAME/          what context NAME sees at ROOT: airlock-stub, libairlock-preload.so,
///                            router.sock; read-only there
///   ROOT/home/NAME/          HOME of a user context
///   ROOT/root/               where new roots are assembled
///   ROOT/upper/NAME/         what context NAME has changed in the system's folders; where ROOT is
///                            in memory, in a folder of ROOT's own below state_folder()
class RuntimeDir {
 public:
  /// A folder that is to be served for longer; created if missing (0711). EADDRINUSE if a daemon
  /// answers there, EACCES… if it cannot be written.
  static base::Result<RuntimeDir> open(std::string root);
  /// A new private one, removed with this object: below the first of AIRLOCK_RUNTIME_PARENT, /run,
  /// $XDG_RUNTIME_DIR and /tmp where programs can be executed.
  static base::Result<RuntimeDir> make_private();

  RuntimeDir(RuntimeDir&& other) noexcept;
  RuntimeDir& operator=(RuntimeDir&&) = delete;
  ~RuntimeDir();

  const std::string& root() const { return root_; }
  std::string control_socket() const { return root_ + "/control.sock"; }
  std::string view(const std::string& context) const { return root_ + "/view/" + context; }
  std::string home(const std::string& context) const { return root_ + "/home/" + context; }
  std::string upper(const std::string& context) const { return uppers_ + "/" + context; }
  /// What is kept there takes no memory.
  bool has_disk_for_uppers() const;
  /// The same of a daemon that would serve at `root`.
  static bool would_have_disk(const std::string& root);
  /// AIRLOCK_RUNTIME_DIR, or /run/airlock.
  static std::string default_root();
  /// AIRLOCK_STATE_DIR, or /var/lib/airlock: of the daemons of this machine, not of contexts.
  static std::string state_folder();
  std::string staging() const { return root_ + "/root"; }

  /// Creates view(context), with the stub and the interposer copied from `programs` when
  /// `with_router`; else empty.
  base::Result<void> make_view(const std::string& context, const std::string& programs,
                               bool with_router) const;
  /// Creates view(context)/ld.so.preload: what /etc/ld.so.preload says, after the interposer.
  /// False, and no file, if there is no /etc/ld.so.preload that it could be mounted over
  /// (ld.so(8)).
  base::Result<bool> make_preload_file(const std::string& context) const;
  /// Adds airlock-shell, and its libraries as far as they are there, to view(context), for a
  /// context with a shell.
  base::Result<void> add_shell(const std::string& context, const std::string& programs) const;
  /// Adds airlock-files, unless it is there: for the first operation on the context's files.
  base::Result<void> add_file_tool(const std::string& context, const std::string& programs) const;
  /// Creates home(context), 0700, owned by `uid`:`gid`.
  base::Result<void> make_home(const std::string& context, unsigned uid, unsigned gid) const;
  /// Creates upper(context), empty.
  base::Result<void> make_upper(const std::string& context) const;
  /// Removes all of them, what the context could write to beside the caller; what is still mounted
  /// elsewhere stays usable there.
  void remove(const std::string& context) const;

 private:
  RuntimeDir(std::string root, bool is_private);
  static base::Result<void> make_folders(const std::string& root);
  /// Of all contexts, as far as there are any: home and upper.
  void remove_what_contexts_wrote() const;

  std::string root_;
  bool is_private_ = false;
  std::string uppers_;
  std::unique_ptr<FolderRemover> remover_;
};

}  // namespace contexts
