// The names of system calls in which threads wait, for dumps.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

// "poll" for SYS_poll; empty for calls that hardly ever wait. Does not park, and allocates nothing.
std::string_view syscall_name(std::int64_t number);

}  // namespace tuza::rt
