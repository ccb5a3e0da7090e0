// A chat over TCP: each line that a guest sends goes to all guests. Try it with several `nc 127.0.0.1 7000`.
//
// One goroutine, the hub, keeps the list of guests. The other goroutines send it messages through channels, so nothing
// needs a lock. Each guest has two goroutines: one reads lines, and one writes the contents of the guest's outbox. The
// hub never waits for a guest: a guest whose outbox is full does not read, and is removed.
#include <tuza/framework/command_line.h>
#include <tuza/framework/log.h>
#include <tuza/netpoll/listen_and_serve.h>
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

  // Ends run(). All guests must have left.
  void end() { ends_.close(); }

  void run() {
    for (bool ended = false; !ended;) {
      tuza::select(tuza::on_recv(ends_, [&ended](auto) { ended = true; }),
                   tuza::on_recv(joins_,
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
  tuza::Chan<int> ends_;  // closed at the end; nothing is sent
  // Accessed by the hub's goroutine only.
  std::vector<Guest*> guests_;
  int last_number_ = 0;
};

// The length of the UTF-8 character at the beginning of `text`, if it may be shown; otherwise 0. Terminals obey control
// characters (C0, DEL, C1), and characters such as U+202E turn the direction of what follows: with them, a guest could
// clear the screens of the others, or write in another one's name.
std::size_t shown_length(std::string_view text) {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return (first >= 0x20 && first != 0x7f) || first == '\t' ? 1 : 0;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0) return 0;
  unsigned code = first & (0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<unsigned, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kSmallest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  const bool controls = code < 0xa0 || (code >= 0x200e && code <= 0x200f) ||
                        (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return valid && !controls ? length : 0;
}

// `line` with "?" for each byte that is not to be shown, and without the CR that some clients send.
std::string printable(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::string out;
  while (!line.empty()) {
    const std::size_t length = shown_length(line);
    out += length > 0 ? line.substr(0, length) : "?";
    line.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

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
      hub.say(guest, printable(std::string_view(text).substr(begin, end - begin)));
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
  return tuza::run([&args] {
    Hub hub;
    tuza::WaitGroup running;
    running.go([&hub] { hub.run(); });
    const tuza::Result<void> served =
        tuza::net::listen_and_serve(args.listen, [&hub](tuza::net::Conn& conn) { serve(conn, hub); });
    hub.end();
    running.wait();
    return args.explain(served);
  });
}
