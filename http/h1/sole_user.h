// Names a goroutine that writes a response, or reads a body, while another one waits in the middle of that: a handler that
// returns before a goroutine it has started, say. Neither would notice anything but bytes in the wrong order, or memory that is
// used twice. Ends the process, as a second one that waits for a descriptor does.
//
// Only what overlaps a wait is seen: two that take turns are allowed, and two on different processors at once are for
// ThreadSanitizer.
#pragma once

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/relaxed.h>

namespace tuza::http {

enum class Direction : bool { kResponse, kBody };

template <Direction direction>
class SoleUser {
 public:
  void check() const {
    if (in_use_) [[unlikely]]
      rt::fatal(direction == Direction::kResponse ? "two goroutines write one response at once"
                                                  : "two goroutines read the body of one request at once");
  }

  class Use {
   public:
    explicit Use(SoleUser& user) : user_(user) {
      user.check();
      user.in_use_ = true;
    }
    ~Use() { user_.in_use_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    SoleUser& user_;
  };

 private:
  // Set by the goroutine that uses the direction. Relaxed: after a stale read, a second user merely goes unreported.
  rt::Relaxed<bool> in_use_{false};
};
using SoleWriter = SoleUser<Direction::kResponse>;
using SoleReader = SoleUser<Direction::kBody>;

}  // namespace tuza::http
