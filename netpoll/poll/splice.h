// From one socket to another by splice(2), as far as the bytes have arrived: they do not enter the process
// (poll/splice_pipe.h). For net::relay, and for proxies that know how long the rest of a body is.
#pragma once

#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
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
// while other goroutines use the same side of either. `taken`, if it is set, is called with the size of each portion before
// that is written: the receiver of the last one may answer at once, on the connection of `from` too.
[[nodiscard]] Spliced splice_received(Descriptor& to, Descriptor& from, std::uint64_t most,
                                      const Context& ctx, const std::function<void(std::size_t)>& taken = {});

}  // namespace tuza::net
