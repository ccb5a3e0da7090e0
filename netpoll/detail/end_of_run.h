// What netpoll does for the process, and takes back when a runtime ends.
#pragma once

namespace tuza::net {

// Closes a SignalSet that nobody can close any more, because the goroutine that owns it has been left behind. Called by the
// thread that ends the runtime, when no M runs goroutines.
void give_back_abandoned_signals();

}  // namespace tuza::net
