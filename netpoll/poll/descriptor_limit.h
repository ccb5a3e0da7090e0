// How many descriptors the process may have open, and who keeps his hands off the last of them.
//
// A server whose table is full cannot even say that it is well. So connections leave kDescriptorsForOthers
// free (netpoll/serve.h), and the files that are sent to them half of those (http/file_server.cpp).
#pragma once

#include <cstddef>

namespace tuza::net {

inline constexpr std::size_t kDescriptorsForOthers = 32;

// What is allowed nearly everywhere, where the system does not say.
inline constexpr std::size_t kDescriptorsUsual = 1024;

// RLIMIT_NOFILE as it is now, the soft one; at most 2^24.
std::size_t descriptors_allowed();

}  // namespace tuza::net
