// Public header, part of <tuza/tuza.h>.
//
// Time slices, as programs see them.
//
// Programs need not do anything: a goroutine that computes for too long loses its P to other goroutines, and
// continues on its own thread (rt/slice/handoff.h). If too many goroutines do so, some are suspended for a
// while (rt/slice/lane.h). The calls below are for programs that want to support or prevent this:
//
//     for (const Row& row : rows) {
//       add(row);
//       tuza::checkpoint();
//     }
//
//     {
//       const tuza::NoPreempt keep_going;        // others wait for this lock
//       const std::scoped_lock lock(table_mutex);
//       ++table[key];
//     }
#pragma once

#include <tuza/sched/detail/language.h>  // first

namespace tuza {

// If the goroutine has lost its P, it takes an idle P or queues for one. If it has been asked to yield while
// others wait, it yields. Otherwise the call costs a nanosecond or two. For long loops that should share a
// thread instead of keeping one of their own. Parks. Does nothing on a thread that is not a goroutine.
void checkpoint();

// While one exists, the goroutine is never suspended in the middle of its own code (the suspend signal is
// not sent, or is refused), and checkpoints that a compiler inserted (docs/guide/libraries.md) do nothing. For sections
// that other goroutines or threads spin on, or wait for with locks of their own. The P may still be taken
// away; that stops nothing. Keep the section short: suspended goroutines make room for others. Nests; may be
// held across parking calls. Does nothing on a thread that is not a goroutine.
class [[nodiscard]] NoPreempt {
 public:
  NoPreempt();
  ~NoPreempt();
  NoPreempt(const NoPreempt&) = delete;
  NoPreempt& operator=(const NoPreempt&) = delete;
};

}  // namespace tuza
