// An echo server on raw TCP: one goroutine per connection sends back what it receives.
#include <tuza/framework/command_line.h>
#include <tuza/framework/log.h>
#include <tuza/netpoll/listen_and_serve.h>
#include <tuza/sched/run.h>

#include <array>
#include <span>

int main(int argc, char** argv) {
  const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:7000");
  const tuza::Logging logging;
  return tuza::run([&args] {
    return args.explain(tuza::net::listen_and_serve(args.listen, [](tuza::net::Conn& conn) {
      std::array<std::byte, 4096> buffer;
      while (const auto n = conn.read(buffer)) {
        if (*n == 0 || !conn.write_all(std::span(buffer).first(*n))) break;
      }
    }));
  });
}
