// The name of a function, from the symbol table of the file that it was loaded from.
//
// dladdr() knows exported functions only. Lambdas, static functions and everything in an unnamed namespace,
// which is most of a program, are only in the file's full symbol table. This code reads the table by system
// calls and allocates nothing, so it works in a signal handler.
//
// Format: System V ABI, "Symbol Table". Where files have another format, no name is found; dumps then have the file and the
// offset in it.
#pragma once

#include <cstdint>

namespace tuza::rt {

struct Symbol {
  char name[512];        // mangled, zero-terminated; empty if unknown
  std::uint64_t offset;  // of the address, from the beginning of the function
};

// Finds the function of `file`, loaded at `base`, that contains `address`. False if the table has none.
bool find_symbol(const char* file, std::uintptr_t base, std::uintptr_t address, Symbol& symbol);

// The file of the program itself, which is known by the name that started it: that need not be a valid path from here.
const char* program_file(const char* name);

}  // namespace tuza::rt
