// A TCP proxy: passes each connection on to one upstream, in both directions.
//
// Plain sockets on both sides, so long transfers go from socket to socket inside the kernel (netpoll/copy.h).
#include <tuza/framework/command_line.h>
#include <tuza/framework/log.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listen_and_serve.h>
#include <tuza/sched/log.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <string>

namespace {

using namespace std::chrono_literals;

void serve(tuza::net::Conn& client, const std::string& upstream) {
  auto server = tuza::net::dial("tcp", upstream, tuza::net::time_after_now(10s));
  if (!server) {
    static tuza::LogLimiter limiter;  // a line per second, however many clients come
    return limiter.log(tuza::LogLevel::kError, "upstream: " + server.error().message());
  }
  // An error closes both connections, and is the affair of their owners: a client that goes away is no news.
  (void)tuza::net::relay(tuza::Context::background(), client, *server, {.idle_timeout = 1h});
}

}  // namespace

int main(int argc, char** argv) {
  std::string upstream = "127.0.0.1:7001";
  const tuza::CommandLine args = tuza::parse_command_line(
      argc, argv, "127.0.0.1:7000", {{"upstream", "Address to pass connections on to", upstream}});
  const tuza::Logging logging;
  return tuza::run([&] {
    return args.explain(tuza::net::listen_and_serve(
        args.listen, [&upstream](tuza::net::Conn& client) { serve(client, upstream); }));
  });
}
