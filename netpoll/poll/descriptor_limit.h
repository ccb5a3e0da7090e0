// The number of descriptors the process may have open, and a reserve that bulk users leave free.
//
// A server whose descriptor table is full cannot even report its health. Connections therefore leave
// kDescriptorsForOthers free (netpoll/serve.h), and the files sent over them leave half of those
// (http/file_server.cpp).
#pragma once

#include <cstddef>

namespace tuza::net {

inline constexpr std::size_t kDescriptorsForOthers = 32;

// The usual limit, used if the system does not report one.
inline constexpr std::size_t kDescriptorsUsual = 1024;

// The current soft RLIMIT_NOFILE; at most 2^24.
std::size_t descriptors_allowed();

}  // namespace tuza::net
