// The environment variables of the runtime: docs/reference/environment.md lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tuza::rt {

// TUZA_MAXPROCS if it is set to a valid number, otherwise 0. An invalid one is reported.
std::int32_t procs_from_environment();

// One line, "NAME: what is wrong", for each variable whose value a runtime would ignore. For programs that refuse to
// start then. Call it before any runtime starts, while there is one thread.
std::vector<std::string> environment_problems();

}  // namespace tuza::rt
