// Public header, part of <tuza/tuza.h>.
//
// A text dump of all goroutines of the running program: id, state, what each waits for and since when, name,
// stack and creator. Operators read it when a service hangs.
//
//     tuza::dump_goroutines([](std::string_view text) { return write_somewhere(text); });
//
//     goroutine 17 [IO wait (read), 3 min] conn:
//       #0  tuza::rt::park(...)+184 (server+0x1f3a8)
//       ...
//     created by goroutine 1 in void tuza::net::Server::start(tuza::net::Conn)
//         at netpoll/serve.cpp:146
//
// In a grouped dump, goroutines with the same stack, state and creator form one entry with their number: a
// hundred thousand connections fit on one page. Those that run come first, grouped by name, creator and HTTP request
// without its query, with the stack of the one that has run for longest: a service that stands shows at the top
// which request keeps it busy.
//
// Waiting goroutines are shown with a stack. The dump holds each of them in its wait while it reads the
// stack (sched/rt/report/walk.h), for less than a microsecond unless the kernel takes the reader's core
// during the read. Running goroutines are interrupted by the runtime's own signal for about a microsecond, and
// say where they are, for how long they have run and which HTTP request they serve; those whose threads wait in
// the kernel are left alone and show only the call (sched/rt/report/sample.h). Runnable goroutines have no
// stack in the dump. Frames of functions that were compiled without frame pointers are missing.
//
// Nothing is stopped: the goroutines continue during the dump. Each entry was true at some moment, but not
// all at the same moment. A goroutine that began or ended during the dump may be missing.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tuza {

struct DumpOptions {
  bool group = false;  // one entry for all goroutines of a kind: first those that run, then the most frequent
  bool stacks = true;  // false: only state, request and creator of each
  bool frames = false;  // also the frames of the runtime, and of the standard library's calls of functions
};

// Passes the text to `write` in pieces of some tens of kilobytes; the dump ends if `write` returns false.
// `write` may park. Any thread; on a goroutine the call parks between the pieces, so that other goroutines
// can run. Waits up to 100 ms for the place of a running goroutine, and 2 s for all. Outside tuza::run there are
// no goroutines, and the text says so.
void dump_goroutines(const std::function<bool(std::string_view text)>& write, DumpOptions options = {});

// Returns the whole dump: about 1 KB per goroutine or, grouped, per group.
[[nodiscard]] std::string dump_goroutines(DumpOptions options = {});

}  // namespace tuza
