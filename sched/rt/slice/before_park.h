// An action of the running goroutine that is due just before it parks: what must not wait as long as the goroutine does.
//
//     rt::set_before_park(&send_collected_output, this);
//     user_code();
//     rt::clear_before_park();
//
// parking_point() runs it, once, at the first call that may park; the call need not park in the end. Nothing is paid by
// goroutines without an action, nor by calls that do not park: the M is marked as if its goroutine were asked to yield,
// with a mark that fits no goroutine, so that the one check of parking_point() finds both.
//
// The action runs in user code, with no lock of the runtime held; the caller may hold locks of the program, so it should not
// wait. Both functions are for the goroutine itself; one action at a time.
#pragma once

namespace tuza::rt {

void set_before_park(void (*act)(void* arg), void* arg);
void clear_before_park();

// For parking_point_slow(), outside the runtime.
void run_before_park();

}  // namespace tuza::rt
