// Calls of POSIX that return -errno instead of setting errno: sys::close(fd). They are objects, so that they can be passed on.
//
// On Linux they go to the kernel by number (calls_linux.h), for the reasons that sched/arch/syscall.h gives; elsewhere to the C
// library (calls_posix.h). Descriptors are accepted as long, as these calls return them.
//
// Thread-safe. None of these calls parks the goroutine; each may block the M.
#pragma once

#if defined(TUZA_PORTABLE)
#include <tuza/sched/arch/calls_posix.h>
#else
#include <tuza/sched/arch/calls_linux.h>
#endif
