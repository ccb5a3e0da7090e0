// The two ends of a new pipe: one for goroutines, one for a child process. Internal: not installed.
#pragma once

#include <tuza/netpoll/pipe.h>
#include <tuza/netpoll/process/own_fd.h>

#include <string>

namespace tuza::detail {

struct PipeEnds {
  // Our end does not block; the child's does, as programs expect. Only ours is known to the poller. Neither is inherited.
  static Result<OwnFd> open(PipeReader& ours);
  static Result<OwnFd> open(PipeWriter& ours);

  // What is in the pipe now, without waiting for more. Does not park.
  static Result<std::string> read_rest(PipeReader& from);
};

}  // namespace tuza::detail
