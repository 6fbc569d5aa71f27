// popen(3) and pclose(3) on the routed spawn. The streams are ordinary ones of fdopen(3), so
// pclose must know which of them have a child.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "preload/self.h"
#include "preload/shell.h"

namespace preload {
namespace {

struct Stream {
  Stream* next;
  FILE* file;
  int fd;      // this process's end of the pipe
  ino_t pipe;  // to notice that `fd` has become something else
  int pid;
};

/// Held from the walk over the older streams to the entry of the new one, so that no two popens
/// run each other's pipe ends into their children.
pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
Stream* streams = nullptr;

struct Mode {
  bool read = false;
  bool write = false;
  bool close_on_exec = false;
};

/// glibc's rule: any of "rwe" in any order, but exactly one direction.
bool parse_mode(const char* text, Mode& mode) {
  for (; *text != '\0'; ++text) {
    if (*text != 'r' && *text != 'w' && *text != 'e') return false;
    mode.read = mode.read || *text == 'r';
    mode.write = mode.write || *text == 'w';
    mode.close_on_exec = mode.close_on_exec || *text == 'e';
  }
  return mode.read != mode.write;
}

struct Pipe {
  int ours;
  int childs;
};

/// The child must not hold older streams open, or their readers would never see the end.
int close_older_streams(posix_spawn_file_actions_t* actions, int child_fd) {
  for (const Stream* stream = streams; stream != nullptr; stream = stream->next) {
    struct stat status;
    // A stream ended by fclose instead of pclose has left an fd number that is now another's.
    const bool is_open = fstat(stream->fd, &status) == 0 && status.st_ino == stream->pipe;
    if (!is_open || stream->fd == child_fd) continue;
    const int error = posix_spawn_file_actions_addclose(actions, stream->fd);
    if (error != 0) return error;
  }
  return 0;
}

int spawn_reader_or_writer(int* pid, const char* command, const Pipe& pipe, int child_fd) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = posix_spawn_file_actions_adddup2(&actions, pipe.childs, child_fd);
  if (error == 0) error = close_older_streams(&actions, child_fd);
  if (error == 0) error = spawn_shell(pid, "sh", "-c", command, &actions, nullptr, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

Stream* unlink_stream(FILE* file) {
  for (Stream** link = &streams; *link != nullptr; link = &(*link)->next) {
    if ((*link)->file != file) continue;
    Stream* stream = *link;
    *link = stream->next;
    return stream;
  }
  return nullptr;
}

/// An older entry with the same address belongs to a stream that fclose has freed.
void link_stream(Stream* stream) {
  Stream* stale = unlink_stream(stream->file);
  if (stale != nullptr) waitpid(stale->pid, nullptr, WNOHANG);
  free(stale);
  stream->next = streams;
  streams = stream;
}

/// Spawns the command at the other end and enters `stream`. 0 or an errno value.
int start(Stream* stream, const char* command, const Mode& mode, const Pipe& pipe) {
  struct stat status;
  if (fstat(pipe.ours, &status) != 0) return errno;
  stream->fd = pipe.ours;
  stream->pipe = status.st_ino;
  pthread_mutex_lock(&streams_lock);
  const int child_fd = mode.read ? STDOUT_FILENO : STDIN_FILENO;
  const int error = spawn_reader_or_writer(&stream->pid, command, pipe, child_fd);
  if (error == 0) {
    if (!mode.close_on_exec) fcntl(pipe.ours, F_SETFD, 0);
    link_stream(stream);
  }
  pthread_mutex_unlock(&streams_lock);
  return error;
}

FILE* open_stream(const char* command, const Mode& mode) {
  KeepErrno keep;
  int ends[2];
  auto* stream = static_cast<Stream*>(malloc(sizeof(Stream)));
  if (stream == nullptr || pipe2(ends, O_CLOEXEC) != 0) {
    keep.replace(errno);
    free(stream);
    return nullptr;
  }
  const Pipe pipe = mode.read ? Pipe{ends[0], ends[1]} : Pipe{ends[1], ends[0]};
  stream->file = fdopen(pipe.ours, mode.read ? "r" : "w");
  if (stream->file != nullptr) fwide(stream->file, -1);  // POSIX: byte-oriented from the start
  const int error = stream->file != nullptr ? start(stream, command, mode, pipe) : errno;
  close(pipe.childs);
  if (error == 0) return stream->file;  // NOLINT(clang-analyzer-unix.Malloc): link_stream has it

  if (stream->file != nullptr) {
    fclose(stream->file);
  } else {
    close(pipe.ours);
  }
  free(stream);
  keep.replace(error);
  return nullptr;
}

/// Flushes, closes, and only then waits: the child may be waiting for the end of its input.
int close_stream(Stream* stream) {
  const int pid = stream->pid;
  int cancel_state;  // pclose is no cancellation point in glibc: the child would never be reaped
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  const int flushed = fclose(stream->file);
  free(stream);
  const int status = wait_for(pid);
  pthread_setcancelstate(cancel_state, nullptr);
  return status != 0 ? status : flushed;
}

}  // namespace
}  // namespace preload

#pragma GCC visibility push(default)
extern "C" {

FILE* popen(const char* command, const char* type) {
  preload::Mode mode;
  if (!preload::parse_mode(type, mode)) {
    errno = EINVAL;
    return nullptr;
  }
  return preload::open_stream(command, mode);
}

FILE* _IO_popen(const char* command, const char* type) { return popen(command, type); }

// Opens a command on a stream the caller has laid out as glibc's private struct. Nothing calls it
// any more; refusing beats a shell that nobody routes.
FILE* _IO_proc_open(FILE*, const char*, const char*) {
  errno = EACCES;
  return nullptr;
}

int pclose(FILE* file) {
  pthread_mutex_lock(&preload::streams_lock);
  preload::Stream* stream = preload::unlink_stream(file);
  pthread_mutex_unlock(&preload::streams_lock);
  if (stream != nullptr) return preload::close_stream(stream);
  const auto real_pclose = preload::real().pclose;
  return real_pclose != nullptr ? real_pclose(file) : fclose(file);
}
}
#pragma GCC visibility pop
