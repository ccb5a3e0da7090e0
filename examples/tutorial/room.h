// The room: who is here, and who is sent which line.
#pragma once

#include <tuza/tuza.h>

#include <memory>
#include <set>
#include <string>

struct Guest {
  explicit Guest(std::string its_name) : name(std::move(its_name)) {}
  std::string name;
  tuza::Chan<std::string> outbox{64};  // lines for this guest; the room closes it
};
using GuestPtr = std::shared_ptr<Guest>;

//! [room]
class Room {
 public:
  void join(GuestPtr guest) { joins_.send(std::move(guest)); }
  void leave(GuestPtr guest) { leaves_.send(std::move(guest)); }
  void say(std::string line) { lines_.send(std::move(line)); }

  // Runs on one goroutine. Only that goroutine touches guests_, so no lock is needed.
  [[noreturn]] void run() {
    for (;;) {
      tuza::select(tuza::on_recv(joins_, [this](auto guest) { add(*guest); }),
                   tuza::on_recv(leaves_, [this](auto guest) { remove(*guest); }),
                   tuza::on_recv(lines_, [this](auto line) { tell_all(*line); }));
    }
  }

 private:
  void add(const GuestPtr& guest) {
    guests_.insert(guest);
    tell_all(guest->name + " joins\n");
  }

  void remove(const GuestPtr& guest) {
    if (guests_.erase(guest) == 0) return;
    guest->outbox.close();
    tell_all(guest->name + " leaves\n");
  }

  void tell_all(const std::string& line) {
    std::set<GuestPtr> slow;
    for (const GuestPtr& guest : guests_) {
      if (!guest->outbox.try_send(line)) slow.insert(guest);  // never wait for a guest
    }
    for (const GuestPtr& guest : slow) remove(guest);
  }

  tuza::Chan<GuestPtr> joins_, leaves_;
  tuza::Chan<std::string> lines_;
  std::set<GuestPtr> guests_;
};
//! [room]
