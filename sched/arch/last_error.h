// errno, for the few calls of libc that report nothing else. Ask at once: after a park it is another
// thread's.
#pragma once

#include <cerrno>

namespace tuza {

[[gnu::noinline]] inline int last_error() { return errno; }
[[gnu::noinline]] inline void set_last_error(int number) { errno = number; }

}  // namespace tuza
