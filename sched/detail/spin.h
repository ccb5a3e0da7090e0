// Waiting for a moment before waiting in a queue: worth it only while the holder of a lock runs elsewhere.
//
// Go's rule. A goroutine spins if it has a P, there is another P at work, on which the holder may be running,
// and nobody waits for the goroutine's own P. A thread spins always. At most kSpinRounds rounds of about a
// microsecond, less than parking and waking cost.
//
// Any thread. Blocks the P for the time of a round.
#pragma once

namespace tuza::rt {

inline constexpr int kSpinRounds = 4;

// `round`: how many there have been.
[[nodiscard]] bool worth_spinning(int round);
void spin_a_round();

}  // namespace tuza::rt
