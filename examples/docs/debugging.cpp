// The code of docs/operate/debugging.md.
#include <tuza/netpoll/signals.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine_dump.h>

#include <signal.h>

#include <cstdio>
#include <string>

namespace debugging_page {

//! [dump]
void dump_on_sigusr1() {
  tuza::go({.name = "dump"}, [] {
    auto signals = tuza::net::SignalSet::open({SIGUSR1});
    if (!signals) return;
    while (signals->wait()) {
      const std::string text = tuza::dump_goroutines({.group = true});
      std::fputs(text.c_str(), stderr);
    }
  });
}
//! [dump]

}  // namespace debugging_page
