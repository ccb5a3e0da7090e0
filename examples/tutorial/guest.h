// One guest of the chat, from the name to the last line.
#pragma once

#include <tuza/net.h>
#include <tuza/tuza.h>

#include <chrono>

#include "lines.h"
#include "room.h"

//! [timeouts]
struct Timeouts {
  std::chrono::milliseconds name{10'000};   // until the client has sent its name
  std::chrono::milliseconds idle{600'000};  // between two lines
  std::chrono::milliseconds write{10'000};  // until the client takes some of what was written
};

inline void serve_guest(tuza::net::Conn& conn, Room& room, const Timeouts& timeouts) {
  conn.set_write_timeout(timeouts.write);
  conn.set_read_deadline(tuza::net::time_after_now(timeouts.name));
  //! [timeouts]
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
    conn.close();
  });
  room.join(guest);
  //! [idle]
  for (;;) {
    conn.set_read_deadline(tuza::net::time_after_now(timeouts.idle));
    const auto line = lines.next();
    if (!line) break;
    room.say(*name + ": " + *line + "\n");
  }
  //! [idle]
  room.leave(guest);
  writer.wait();
}
