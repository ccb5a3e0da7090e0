// Public header, part of <tuza/tuza.h>.
//
// Time slices, as a program sees them.
//
// Nothing has to be done for them: a goroutine that computes for long loses its P, so that others run, and
// goes on on its own thread (rt/slice/handoff.h). If too many do that, some are suspended for a while (rt/slice/lane.h).
// These are for programs that want to help or to hinder that:
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

namespace tuza {

// If the goroutine has lost its P it takes an idle one or queues for one; if it has been asked to yield while
// others wait, it does. Costs a nanosecond or two otherwise. For long loops that would rather share a thread
// than keep one of their own. Parks. Elsewhere than on a goroutine it does nothing.
void checkpoint();

// While one exists the goroutine is never suspended in the middle of its own code (the signal that does it
// is not sent, or refused), and checkpoints that a compiler inserted (HACKING.md) do nothing. For sections
// that other goroutines or threads spin on, or wait for with locks of their own. The P may still be taken
// away: that stops nothing. Keep it short: a suspended goroutine makes room for others. Nests; may be held
// across parking calls. Elsewhere than on a goroutine it does nothing.
class [[nodiscard]] NoPreempt {
 public:
  NoPreempt();
  ~NoPreempt();
  NoPreempt(const NoPreempt&) = delete;
  NoPreempt& operator=(const NoPreempt&) = delete;
};

}  // namespace tuza
