// Asks the system's resolver for the addresses of a name, for as long as a Context allows.
//
// Nothing interrupts getaddrinfo(3), which waits 30 s and more for name servers that do not answer. So a query whose
// context can end runs on a goroutine of its own, and the caller waits for its answer or for the end of the context:
//
//     caller                      goroutine "resolve"
//     takes a place, within ctx
//     starts the goroutine -----> getaddrinfo()
//     waits, within ctx  <------- sends its answer into a channel that both own; gives the place back
//
// A query whose caller has gone is abandoned: it goes on, and its answer is destroyed with the channel. It occupies a thread
// until then, and so a limit on queries keeps dead name servers from using up the threads. A query whose context cannot end
// runs in place, and counts as well.
//
// Not singleflight, which would merge queries for one name: a query that the end of a run leaves behind never ends, and
// would hold its name up in the next run.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/endpoint.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tuza::net {

// How many queries run at once. Each takes a thread and one or two descriptors: 128 leave most of a usual limit of 1,024
// descriptors to the program. Go allows 500, too many for containers with a few hundred threads. While name servers answer
// within 10 ms, 128 are 12,800 names per second.
inline constexpr std::int64_t kQueriesMax = 128;

struct NameQuery {
  std::string host;
  std::uint16_t port;
  int family;        // AF_UNSPEC, AF_INET, AF_INET6
  std::string text;  // what the caller asked for, for errors
};

// At least one endpoint, in the resolver's order. Errors: those of resolve(); the cause of `ctx` if it ends first, or has
// ended. Parks. If `ctx` can end: inside tuza::run only, else Errc::kNotRunning.
Result<std::vector<Endpoint>> query_resolver(const Context& ctx, NameQuery query);

}  // namespace tuza::net
