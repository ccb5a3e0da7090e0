// The CPU time of another thread of this process.
#pragma once

#include <cstdint>

namespace tuza::rt {

// The CPU time that the thread has used, in ns; 0 if there is no such thread. `thread_id` 0 means the calling
// thread. One system call.
std::int64_t thread_cpu_ns(std::int32_t thread_id);

}  // namespace tuza::rt
