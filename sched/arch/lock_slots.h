// Redirects the calls of a running program into libc to functions of our own.
//
// A call from one object file of the process (the program, a shared library) into another goes through a slot, a word
// that the loader fills with the address of the function. replace_slots() finds the slots by their relocations, and
// writes other addresses into them. Nothing of the kind happens unless it is called, so that it costs nothing.
//
// A slot that the loader binds lazily may be overwritten by a thread that makes its first call at the same time, and
// libraries that are opened later bring slots of their own. So a caller that relies on all slots calls it again: the
// second call finds both.
//
// Thread safety: thread-safe; the loader's lock serialises calls. Does not allocate.
#pragma once

#include <cstdint>
#include <span>

namespace tuza::rt {

struct Replacement {
  const char* name;
  std::uintptr_t function;
};

struct ReplacedSlots {
  int changed = 0;
  int refused = 0;  // read-only, and the kernel does not make them writable
};

// Calls `changed()` after the writes to the slots of each object file that has needed any, before the loader's lock is
// released.
ReplacedSlots replace_slots(std::span<const Replacement> replacements, void (*changed)());

}  // namespace tuza::rt
