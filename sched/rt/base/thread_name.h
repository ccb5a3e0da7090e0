// The names of threads, for debuggers and top.
#pragma once

#include <pthread.h>

namespace tuza::rt {

// At most 15 characters. No name where the system has none.
void name_thread(pthread_t thread, const char* name);

}  // namespace tuza::rt
