// Step 2: a chat. Each line that one guest sends goes to all guests.
#include <tuza/framework/command_line.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include "lines.h"
#include "room.h"

//! [guest]
void serve_guest(tuza::net::Conn& conn, Room& room) {
  LineReader lines(conn);
  if (!conn.write_all("Your name?\n")) return;
  const auto name = lines.next();
  if (!name) return;

  const auto guest = std::make_shared<Guest>(*name);
  tuza::WaitGroup writer;
  writer.go([&conn, guest] {
    for (const std::string& line : guest->outbox) {
      if (!conn.write_all(line)) break;
    }
    conn.close();  // the outbox is closed, or the client is gone: let the reader end as well
  });
  room.join(guest);
  while (const auto line = lines.next()) room.say(*name + ": " + *line + "\n");
  room.leave(guest);
  writer.wait();
}
//! [guest]

int main(int argc, char** argv) {
  const auto args = tuza::parse_command_line(argc, argv, "127.0.0.1:7000");
  //! [main]
  Room room;
  return tuza::run([&]() -> tuza::Result<void> {
    auto listener = args.explain(tuza::net::listen("tcp", args.listen));
    if (!listener) return std::unexpected(listener.error());
    tuza::go([&room] { room.run(); });
    return tuza::net::serve(*listener, [&room](tuza::net::Conn& conn) { serve_guest(conn, room); });
  });
  //! [main]
}
