// What lies in the two queues of a TCP or Unix-domain socket.
//
// Thread-safe. None of these calls waits.
#pragma once

#include <cstddef>
#include <optional>

namespace tuza::net::socket_queues {

// In bytes; nullopt: the system does not tell.
using Bytes = std::optional<std::size_t>;

// What the peer's system has not acknowledged, or has not been sent at all.
Bytes unacknowledged(int fd);
// The part of that which has not been sent.
Bytes unsent(int fd);
// What has arrived and has not been read.
Bytes unread(int fd);
// Throws away up to `most` bytes of that. What has been thrown away, or -errno.
long discard(int fd, std::size_t most);

}  // namespace tuza::net::socket_queues
