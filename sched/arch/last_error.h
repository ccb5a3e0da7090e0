// errno, for the few libc calls that report errors in no other way. Read it at once: after a park, errno is
// that of another thread.
#pragma once

#include <cerrno>

namespace tuza {

[[gnu::noinline]] inline int last_error() { return errno; }
[[gnu::noinline]] inline void set_last_error(int number) { errno = number; }

}  // namespace tuza
