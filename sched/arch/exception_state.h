// The exceptions that a goroutine has in flight.
//
// The C++ runtime keeps two words per thread: the stack of caught exceptions, and the count of uncaught ones
// (std::uncaught_exceptions). A goroutine that parks inside a catch block, or inside a destructor that runs
// during unwinding, takes both words along: every switch swaps them (rt/switch.cpp). Without that swap, a
// `throw;` after a park would rethrow an exception of whichever goroutine used the thread last.
//
// Layout: Itanium C++ ABI section 2.2.2, __cxa_eh_globals.
#pragma once

namespace tuza::rt {

struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

// The calling thread's own words. The address is valid for the life of the thread, on this thread only; an M
// asks once, at its start. Never inlined, so that no compiler carries the address across a switch.
ExceptionState* thread_exception_state();

}  // namespace tuza::rt
