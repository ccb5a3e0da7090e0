// Reports of goroutines that die from a stack overflow or an uncaught exception.
#pragma once

namespace tuza::rt {

// Installs the SIGSEGV/SIGBUS handler (on each M's alternate stack), which recognises guard pages, and the
// terminate handler, which names the goroutine. Faults at other addresses and on other threads go to the
// handlers that were installed before.
void install_crash_reports();
void remove_crash_reports();

}  // namespace tuza::rt
