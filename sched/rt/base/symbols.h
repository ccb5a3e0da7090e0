// The name of a function, from the symbol table of the file it was loaded from.
//
// dladdr() knows exported functions only; lambdas, static functions and everything in an unnamed namespace,
// which is most of a program, are in the file's full symbol table. Reads it with system calls and without
// allocating, so it works in a signal handler.
//
// Format: System V ABI, "Symbol Table".
#pragma once

#include <cstdint>

namespace tuza::rt {

struct Symbol {
  char name[512];        // mangled, zero-terminated; empty if unknown
  std::uint64_t offset;  // of the address, from the beginning of the function
};

// `file` was loaded at `base`; what contains `address`? False if its table has no such function.
bool find_symbol(const char* file, std::uintptr_t base, std::uintptr_t address, Symbol& symbol);

}  // namespace tuza::rt
