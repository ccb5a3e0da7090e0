#include <tuza/sched/rt/base/symbols.h>

namespace tuza::rt {

bool find_symbol(const char*, std::uintptr_t, std::uintptr_t, Symbol&) { return false; }

const char* program_file(const char* name) { return name; }

}  // namespace tuza::rt
