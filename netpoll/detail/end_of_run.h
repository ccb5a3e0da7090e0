// What netpoll does for the process, and takes back when a runtime ends.
#pragma once

namespace tuza::net {

class SignalSet;

// Closes a SignalSet that is open. Called by the thread that ends the runtime, when no M runs goroutines.
void give_back_signals();
// When the end of the run has closed the set, its signals have no effect, until another set that has been opened for them is closed.
// For a program that ends then, with its own exit status.
void swallow_after_the_run(SignalSet& signals);

}  // namespace tuza::net
