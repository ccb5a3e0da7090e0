// Writes to a descriptor that has just had room, for those who must not wait if another writer has used the room since.
#pragma once

#include <cstddef>

namespace tuza::rt {

// As write(2), or -errno; -EAGAIN: there is no room. Where the system cannot write without waiting (to a pipe, before
// Linux 6.5), it blocks the M until there is. Allocates nothing.
long write_now(int fd, const char* text, std::size_t size);

}  // namespace tuza::rt
