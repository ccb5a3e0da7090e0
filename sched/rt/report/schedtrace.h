// TUZA_DEBUG=schedtrace: the state of the scheduler in Go's words, for people and for tools that read Go's.
#pragma once

#include <cstdint>

namespace tuza::rt {

struct Sched;

// Prints the line, and with scheddetail every P, M and G. Looks without locks: a snapshot that may be torn.
void print_schedtrace(const Sched& sched, std::int64_t now_ns);

// The same with every detail: for a process that is about to abort.
void print_sched_state(const Sched& sched);

}  // namespace tuza::rt
