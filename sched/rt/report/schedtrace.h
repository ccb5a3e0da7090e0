// TUZA_DEBUG=schedtrace: the state of the scheduler in Go's terms, for people and for tools that read Go's
// traces.
#pragma once

#include <cstdint>

namespace tuza::rt {

struct Sched;

// Prints the summary line, and with scheddetail every P, M and G. Reads without locks: the snapshot may be
// torn.
void print_schedtrace(const Sched& sched, std::int64_t now_ns);

// Prints the summary, every P and every M, whatever the options: for a process that is about to abort.
void print_sched_state(const Sched& sched);

}  // namespace tuza::rt
