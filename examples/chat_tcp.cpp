// A chat over TCP: each line that a guest sends goes to all guests. Try it with several `nc 127.0.0.1 7000`.
//
// One goroutine, the hub, keeps the list of guests. The other goroutines send it messages through channels, so nothing
// needs a lock. Each guest has two goroutines: one reads lines, and one writes the contents of the guest's outbox. The
// hub never waits for a guest: a guest whose outbox is full does not read, and is removed.
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

// A Guest lives on the stack of its connection's goroutine. That goroutine does not return before the hub has received
// leave() and has closed the outbox.
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
    if (!is_here(guest)) return;  // the guest was removed, and may no longer exist
    const std::string line = guest.name() + " leaves\n";
    remove(guest);  // from here on the guest may no longer exist
    tell_all(line);
  }

  void hear(Guest& from, const std::string& text) {
    if (text == "/who") {
      const std::string answer = std::to_string(guests_.size()) + " here, " +
                                 std::to_string(tuza::num_goroutine()) + " goroutines\n";
      // Lines of a removed guest may still arrive.
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
      guest->conn.close();  // pending reads and writes return
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
  // Accessed by the hub's goroutine only.
  std::vector<Guest*> guests_;
  int last_number_ = 0;
};

// Passes lines to the hub until the stream ends, an error occurs, or a line is too long.
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
    // Drains the outbox to its end even after the connection has failed: the guest must exist until the hub has closed
    // the outbox.
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
