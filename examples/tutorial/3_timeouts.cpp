// Step 3: guests that say nothing, and guests that read nothing, are disconnected.
#include <tuza/framework/command_line.h>

#include "guest.h"

int main(int argc, char** argv) {
  const auto args = tuza::parse_command_line(argc, argv, "127.0.0.1:7000");
  Room room;
  //! [main]
  const Timeouts timeouts{.name = std::chrono::milliseconds(500)};  // short, to see it happen
  return tuza::run([&]() -> tuza::Result<void> {
    auto listener = args.explain(tuza::net::listen("tcp", args.listen));
    if (!listener) return std::unexpected(listener.error());
    tuza::go([&room] { room.run(); });
    return tuza::net::serve(*listener, [&](tuza::net::Conn& conn) { serve_guest(conn, room, timeouts); });
  });
  //! [main]
}
