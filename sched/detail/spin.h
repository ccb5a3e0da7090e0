// Spins briefly before waiting in a queue: worth it only while the holder of the lock runs elsewhere.
//
// Go's rule. A goroutine spins if it has a P, another P is busy, on which the holder may be running, and no
// goroutine waits for its own P. A thread always spins. There are at most kSpinRounds rounds of about a
// microsecond each, which is less than the cost of parking and waking.
//
// Any thread. Blocks the P for the time of a round.
#pragma once

namespace tuza::rt {

inline constexpr int kSpinRounds = 4;

// `round`: the number of rounds so far.
[[nodiscard]] bool worth_spinning(int round);
void spin_a_round();

}  // namespace tuza::rt
