// A body that is on its way from one socket to another, and need not enter this process: what a reverse proxy gives its
// client beside the source of the body.
//
// Thread-unsafe.
#pragma once

#include <tuza/netpoll/poll/splice.h>

#include <cstdint>

namespace tuza {
class Context;
}
namespace tuza::net {
class Conn;
}

namespace tuza::http {

class BodySplicer {
 public:
  // Called before the source is read, once the server has asked for the body or has taken too long to: once per sending, on
  // the goroutine that makes the call. Parks.
  virtual void begins() = 0;
  // By the goroutine that reads the source, of a body with a length. Waits for more of the body, and moves up to `most` bytes of it, behind what the source has given so far. 0 bytes: the
  // source is to be asked again. Parks.
  virtual net::Spliced splice_to(net::Conn& to, std::uint64_t most, const Context& ctx) = 0;

 protected:
  ~BodySplicer() = default;
};

}  // namespace tuza::http
