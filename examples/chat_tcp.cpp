// A chat over TCP: each line that somebody sends goes to everybody. `nc 127.0.0.1 7000`, several times.
//
// One goroutine, the hub, knows who is there; the others tell it through channels, so nothing needs a lock.
// Each guest has two goroutines: one reads lines, one writes what is in the guest's outbox. The hub never
// waits for a guest: whose outbox is full does not read, and is shown the door.
#include <tuza/framework/command_line.h>
#include <tuza/framework/log.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Line = std::shared_ptr<const std::string>;

constexpr std::size_t kOutboxLines = 256;
constexpr std::size_t kLineBytesMax = 1'000;

// On the stack of its connection's goroutine, which stays until the hub has been told that it leaves, and has
// closed the outbox.
struct Guest {
  tuza::net::Conn& conn;
  int number = 0;
  tuza::Chan<Line> outbox{kOutboxLines};  // closed by the hub

  [[nodiscard]] std::string name() const { return "guest " + std::to_string(number); }
};

struct Said {
  Guest* guest;
  std::string text;
};

class Hub {
 public:
  void join(Guest& guest) { joins_.send(&guest); }
  void leave(Guest& guest) { leaves_.send(&guest); }
  void say(Guest& guest, std::string text) { said_.send({&guest, std::move(text)}); }

  [[noreturn]] void run() {
    for (;;) {
      tuza::select(tuza::on_recv(joins_,
                                 [this](auto guest) {
                                   if (guest) add(**guest);
                                 }),
                   tuza::on_recv(leaves_,
                                 [this](auto guest) {
                                   if (guest) part(**guest);
                                 }),
                   tuza::on_recv(said_, [this](auto said) {
                     if (said) hear(*said->guest, said->text);
                   }));
    }
  }

 private:
  void add(Guest& guest) {
    guest.number = ++last_number_;
    guests_.push_back(&guest);
    tell_all(guest.name() + " joins\n");
  }

  void part(Guest& guest) {
    if (!is_here(guest)) return;  // it was shown the door, and may be gone
    const std::string line = guest.name() + " leaves\n";
    remove(guest);  // from here on it may be gone
    tell_all(line);
  }

  void hear(Guest& from, const std::string& text) {
    if (text == "/who") {
      const std::string answer = std::to_string(guests_.size()) + " here, " +
                                 std::to_string(tuza::num_goroutine()) + " goroutines\n";
      // One that has been shown the door may still be talking.
      if (is_here(from)) (void)from.outbox.try_send(std::make_shared<const std::string>(answer));
    } else {
      tell_all(from.name() + ": " + text + "\n");
    }
  }

  void tell_all(std::string text) {
    const auto line = std::make_shared<const std::string>(std::move(text));
    std::vector<Guest*> slow;
    for (Guest* guest : guests_) {
      if (!guest->outbox.try_send(line)) slow.push_back(guest);
    }
    for (Guest* guest : slow) {
      guest->conn.close();  // whoever reads or writes there returns
      remove(*guest);
    }
  }

  [[nodiscard]] bool is_here(const Guest& guest) const {
    return std::ranges::find(guests_, &guest) != guests_.end();
  }

  void remove(Guest& guest) {
    std::erase(guests_, &guest);
    guest.outbox.close();
  }

  tuza::Chan<Guest*> joins_, leaves_;
  tuza::Chan<Said> said_;
  // The hub's goroutine's own.
  std::vector<Guest*> guests_;
  int last_number_ = 0;
};

// Until the end of the stream, an error, or a line that is too long.
void read_lines(Guest& guest, Hub& hub) {
  std::string text;
  std::array<char, 4096> buffer;
  while (const auto n = guest.conn.read(std::span(buffer))) {
    if (*n == 0) return;
    text.append(buffer.data(), *n);
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      if (end - begin > kLineBytesMax) return;
      hub.say(guest, text.substr(begin, end - begin));
    }
    text.erase(0, begin);
    if (text.size() > kLineBytesMax) return;
  }
}

void serve(tuza::net::Conn& conn, Hub& hub) {
  Guest guest{.conn = conn};
  hub.join(guest);
  tuza::WaitGroup writer;
  writer.go([&guest] {
    // To its end even if nobody listens any more: only when the hub has closed it may the guest go.
    bool listens = true;
    for (const auto& line : guest.outbox) listens = listens && guest.conn.write_all(*line).has_value();
  });
  read_lines(guest, hub);
  hub.leave(guest);
  conn.close();
  writer.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:7000");
  const tuza::Logging logging;
  return tuza::run([&args]() -> tuza::Result<void> {
    tuza::Result<tuza::net::Listener> listener = tuza::net::listen("tcp", args.listen);
    if (!listener) return std::unexpected(listener.error());
    Hub hub;
    tuza::go({.name = "hub"}, [&hub] { hub.run(); });
    return tuza::net::serve(*listener, [&hub](tuza::net::Conn& conn) { serve(conn, hub); });
  });
}
