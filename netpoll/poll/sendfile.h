// Bytes from a file to a socket inside the kernel.
#pragma once

#include <cstdint>

namespace tuza::net {

// A flag of send(2): more follows at once, so nothing need leave yet. 0 where there is none.
extern const int kMoreFollows;

// Sends up to `bytes` of the file from `offset` on. How many the socket has taken, 0 at the end of the file, or -errno:
// -EAGAIN is about the socket, -ENOSYS: the system cannot do this. May wait for the disk; blocks the M.
long send_from_file(int socket, int file, std::uint64_t offset, std::uint64_t bytes);

}  // namespace tuza::net
