/* What a shell host and the bash it runs say to each other, over a SEQPACKET socket of that pair
 * alone. C and C++. Both sides are one installation: no versions, native byte order.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later
 */
#ifndef AIRLOCK_CONTEXTS_SHELL_SHELL_PROTOCOL_H
#define AIRLOCK_CONTEXTS_SHELL_SHELL_PROTOCOL_H

#include <stdint.h>

/* C: enumerators are global names. NOLINTBEGIN(readability-identifier-naming) */

enum {
  /* A command text and its variables up to this size come in the datagram, else in a memfd. */
  kShellInlineBytes = 48 << 10,
  kShellMaxReportBytes = 48 << 10,
  kShellMaxBackground = 256,
};

/* Host to shell: one command. Descriptors: stdin, stdout, stderr, and the memfd if `is_long`.
 * The payload is a row of NUL-terminated strings, in the order of the counts. */
struct ShellCommand {
  uint32_t payload_bytes;
  uint32_t is_long;
  /* NAME=VALUE exported from now on; names unset from now on. */
  uint32_t set_count;
  uint32_t unset_count;
  /* NAME=VALUE for this command only. */
  uint32_t scoped_count;
  /* Working folder from now on; for this command only. */
  uint32_t has_cwd;
  uint32_t has_scoped_cwd;
  uint32_t wants_checkpoint;
  /* Last in the payload: the command. */
};

enum ShellReportKind {
  kShellReady = 1,    /* a fresh shell waits for commands */
  kShellStarted = 2,  /* a command runs; checkpoint_pid may take over */
  kShellDone = 3,     /* it ended and the shell lives */
  kShellTakeover = 4, /* the shell died; this checkpoint is the shell now */
  kShellRefused = 5,  /* the command was not run: a folder cannot be entered (error = errno) */
};

/* Why there is no checkpoint. */
enum ShellNoCheckpoint {
  kShellCheckpointTaken = 0,
  kShellNotWanted = 1,
  kShellHoldsPipe = 2, /* of the shell itself, from descriptor 3 on: a copy would hold it too */
  kShellHoldsLock = 3,
  kShellForkFailed = 4,
  kShellMakesNoCopies = 5, /* bash without the builtin, or no bash */
};

/* Shell to host. Behind it: `background_count` pids (int32_t), then NUL-terminated strings: the
 * working folder, then the names of exported variables that changed. */
struct ShellReport {
  uint32_t kind;
  int32_t pid;
  int32_t checkpoint_pid;
  uint32_t no_checkpoint;
  int32_t status; /* 0 to 255, as $? */
  int32_t error;
  /* Of the shell and its children, from the command's start on: microseconds. */
  uint64_t user_us;
  uint64_t system_us;
  uint64_t max_rss_kib;
  uint32_t background_count;
  uint32_t changed_count;
  uint32_t is_truncated;
  uint32_t is_scoped_folder; /* kShellRefused: the command's own folder, not the context's */
};

/* Of a plain bash, whose loop asks its receiver (bash/receiver.c) by `kill -0 NUMBER`. Linux has no
 * pids beyond 4194304. */
enum {
  kShellLoopBegin = 2000000010,
  kShellLoopTake = 2000000011,  /* the channel's next descriptors become 0, 1 and 2 */
  kShellLoopUsage = 2000000012, /* a ShellUsage goes to the channel */
  kShellLoopChannel = 250,      /* SEQPACKET */
  kShellLoopFds = 3,
};

/* Of the shell and the children it has waited for, since they began. */
struct ShellUsage {
  uint64_t user_us;
  uint64_t system_us;
  uint64_t max_rss_kib;
};

/* NOLINTEND(readability-identifier-naming) */

#endif
