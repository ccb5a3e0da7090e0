// What stacks ask of the kernel's memory management, beyond mapping.
//
// Thread-safe. Blocks the M for a system call. Allocates nothing.
#pragma once

#include <cstddef>

namespace tuza::rt {

// Gives the memory of these pages back to the kernel. They stay mapped, and read as zeroes.
void give_back_pages(void* at, std::size_t bytes);

// A goroutine that touches one page of a stack should not be given 512.
void refuse_huge_pages(void* at, std::size_t bytes);

// Makes these pages a guard that needs no mapping of its own. False: the system has none of the kind.
bool advise_guard(void* low, std::size_t bytes);

// How many mappings the system allows the process.
std::size_t mappings_max();

}  // namespace tuza::rt
