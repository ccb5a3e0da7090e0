// Reports of goroutines that die: stack overflow and exceptions that nobody catches.
#pragma once

namespace tuza::rt {

// Installs the SIGSEGV/SIGBUS handler (on each M's alternate stack) that recognises guard pages, and the
// terminate handler that names the goroutine. Faults elsewhere and other threads go to the handlers that
// were there before.
void install_crash_reports();
void remove_crash_reports();

}  // namespace tuza::rt
