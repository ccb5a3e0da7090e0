// Whether the peer of a socket will send nothing more.
#pragma once

namespace tuza::net {

// True also if the connection has failed. Where the system tells of it only behind unread bytes, false while there are
// some. `fd` does not block. Does not wait.
bool peer_has_closed(int fd);

}  // namespace tuza::net
