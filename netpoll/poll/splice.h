// From one socket to another by splice(2), as far as the bytes have arrived: they do not enter the process
// (poll/splice_pipe.h). For net::relay, and for proxies that know how long the rest of a body is.
#pragma once

#include <tuza/sched/result.h>

#include <cstdint>
#include <optional>

namespace tuza {
class Context;
}

namespace tuza::net {

class Descriptor;

struct Spliced {
  std::uint64_t bytes = 0;  // taken out of `from`; they have been written unless there is a write_error
  bool possible = true;     // false: these sockets, or this system, cannot. Copy instead
  std::optional<Error> read_error{}, write_error{};
};

// Moves what `from` has received and still receives, up to `most` bytes, until it has nothing at the moment. 0 bytes also at
// the end of the stream, and where no pipe is to be had: a read tells which. Both must be sockets. Parks for `to`, and
// while other goroutines use the same side of either.
[[nodiscard]] Spliced splice_received(Descriptor& to, Descriptor& from, std::uint64_t most,
                                      const Context& ctx);

}  // namespace tuza::net
