#pragma once
// Forced into every source of the musl programs (cmake/AirlockMusl.cmake): libstdc++'s
// configuration headers ask for glibc; these are musl's answers. Templates are instantiated here,
// since no libstdc++.a is linked.
#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
#define _GLIBCXX_EXTERN_TEMPLATE 0
// glibc's character classes, named by a locale header that <memory> drags in; never used.
#define _ISupper 0x1
#define _ISlower 0x2
#define _ISalpha 0x4
#define _ISdigit 0x8
#define _ISxdigit 0x10
#define _ISspace 0x20
#define _ISprint 0x40
#define _ISgraph 0x80
#define _IScntrl 0x100
#define _ISpunct 0x200
#define _ISalnum (_ISalpha | _ISdigit)
#define _ISblank 0x400
// <memory> names this too; musl 1.2.3 does not declare it, and nobody calls it.
#ifdef __cplusplus
#include <pthread.h>
extern "C" int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                                      const struct timespec*);
#endif
