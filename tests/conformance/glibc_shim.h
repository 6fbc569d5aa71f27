/* What glibc's build defines for its tests and these need when compiled alone. */
#include <limits.h>
#define TIMEOUTFACTOR 4
#define SRCDIR_PATH "/nonexistent"
#define OBJDIR_PATH "/tmp"
#define OBJDIR_ELF_LDSO_PATH "/lib64/ld-linux-x86-64.so.2"
#define INSTDIR_PATH ""
#define LIBDIR_PATH "/lib"
#define BINDIR_PATH "/usr/bin"
#define SBINDIR_PATH "/usr/sbin"
#define ROOTSBINDIR_PATH "/sbin"
#define COMPLOCALEDIR_PATH "/usr/lib/locale"
#define SYSCONFDIR_PATH "/etc"
#define ROOTLIBDIR_PATH "/lib"
#define SLIBDIR_PATH "/lib"
