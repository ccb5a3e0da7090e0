#include <tuza/sched/rt/report/syscall_name.h>

namespace tuza::rt {

// Calls of libc have no numbers.
std::string_view syscall_name(std::int64_t) { return {}; }

}  // namespace tuza::rt
