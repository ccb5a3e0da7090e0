// Joining threads that are about to end, with a limit.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace tuza::rt {

// Joins the thread if it has ended. False: it has not, and is still to be joined. Does not wait.
bool try_join(pthread_t thread);

// Waits for the end of the thread until `deadline_ns` (now_ns()). False: it has not ended, and is still to be joined.
bool join_until(pthread_t thread, std::int64_t deadline_ns);

}  // namespace tuza::rt
