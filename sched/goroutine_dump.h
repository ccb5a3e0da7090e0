// Public header, part of <tuza/tuza.h>.
//
// All goroutines in words, while the program runs: id, state, what they wait for and since when, name, stack,
// creator. What an operator reads when a service hangs.
//
//     tuza::dump_goroutines([](std::string_view text) { return write_somewhere(text); });
//
//     goroutine 17 [IO wait (read), 3 min] conn:
//       #0  tuza::rt::park(...)+184 (server+0x1f3a8)
//       ...
//     created by goroutine 1 in void tuza::net::Server::start(tuza::net::Conn)
//         at netpoll/serve.cpp:146
//
// Grouped, goroutines with the same stack, state and creator make one entry with their number: a hundred
// thousand connections are a page of text.
//
// Goroutines that wait have a stack: each is held in its wait while it is read (sched/rt/report/walk.h), for less
// than a microsecond unless the kernel takes the reader's core then. Those that run or are runnable have
// none. Frames of functions that were compiled without frame pointers are missing.
//
// Nothing is stopped: the goroutines go on meanwhile, so what is said of each was true at a moment of its
// own; one that began or ended meanwhile may be missing.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace tuza {

struct DumpOptions {
  bool group = false;  // the same ones together, the most frequent first
  bool stacks = true;  // false: a line for each, and the creator
};

// Gives the text to `write` in pieces of some tens of kilobytes; false from it ends the dump. `write` may
// park. Any thread; on a goroutine it parks between the pieces, so that the others get their turn. Outside
// tuza::run there are none, and the text says so.
void dump_goroutines(const std::function<bool(std::string_view text)>& write, DumpOptions options = {});

// All of it. Some 1 KB per goroutine or, grouped, per group.
[[nodiscard]] std::string dump_goroutines(DumpOptions options = {});

}  // namespace tuza
