// The number of descriptors the process may have open, what bulk users leave free of it, and the errors that say that it is used up.
//
// A server whose descriptor table is full of clients can neither ask a database for them nor even report its health. Accepted
// connections therefore leave a quarter free, and from kDescriptorsForCalls on no more than that (netpoll/serve.h); the files
// sent over them leave half of kDescriptorsForOthers (http/file_server.cpp).
#pragma once

#include <tuza/sched/result.h>

#include <cstddef>

namespace tuza::net {

inline constexpr std::size_t kDescriptorsForOthers = 32;
inline constexpr std::size_t kDescriptorsForCalls = 1024;

// The usual limit, used if the system does not report one.
inline constexpr std::size_t kDescriptorsUsual = 1024;

// The current soft RLIMIT_NOFILE; at most 2^24.
std::size_t descriptors_allowed();

// This machine, not the peer, has no room for another socket: no descriptor, no memory, no watch.
[[nodiscard]] bool is_out_of_resources(const Error& error);

}  // namespace tuza::net
