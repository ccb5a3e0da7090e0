// A client of WebSockets for a terminal: websocket_client "ws://127.0.0.1:8080/chat?name=ada"
//
// Prints each text message, and sends each line of standard input. When the server goes, it connects again, after a pause
// that grows from 0.1 to 10 s; a line that has not been sent goes to the next connection. It ends with standard input, with
// SIGTERM, and with status 1 where trying again would change nothing: the server refuses the handshake with 4xx.
//
// One goroutine reads, another one writes. Pings are answered because something reads all the time.
#include <tuza/http/client.h>
#include <tuza/http/status.h>
#include <tuza/http/websocket.h>
#include <tuza/netpoll/buf_reader.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/wait_fd.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace std::chrono_literals;
using tuza::Context;
using tuza::Result;
namespace http = tuza::http;
namespace websocket = tuza::http::websocket;

constexpr std::chrono::milliseconds kPauseMin = 100ms, kPauseMax = 10s;
constexpr std::chrono::milliseconds kDialTimeout = 10s;

void say(std::string_view text) {
  std::fprintf(stderr, "* %.*s\n", static_cast<int>(text.size()), text.data());
}

// With "?" for what a terminal obeys: with control characters, others could clear the screen, or write in somebody's name.
// In UTF-8, those of C1 are two bytes, the first of which is 0xc2.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto byte = [&shown](std::size_t at) {
      return at < shown.size() ? static_cast<unsigned char>(shown[at]) : 0xffU;
    };
    const bool c0 = (byte(i) < 0x20 && byte(i) != '\t' && byte(i) != '\n') || byte(i) == 0x7f;
    const bool c1 = byte(i) == 0xc2 && byte(i + 1) < 0xa0;
    if (c0 || c1) shown.replace(i, c1 ? 2 : 1, "?");
  }
  return shown;
}

struct StandardInput {
  // A terminal or a pipe is waited for by the poller; a file is always ready, which the poller refuses.
  Result<std::size_t> read(const Context& ctx, std::span<std::byte> into) {
    const Result<void> ready = tuza::net::wait_readable(ctx, STDIN_FILENO);
    if (!ready && !ready.error().is(std::errc::operation_not_permitted))
      return std::unexpected(ready.error());
    return file.read(into);
  }
  tuza::File file;
};

void send_lines_to(tuza::Chan<std::string>& lines, const Context& ctx) {
  auto file = tuza::File::adopt(STDIN_FILENO, "standard input");
  if (!file) return say(file.error().message());
  StandardInput input{std::move(*file)};
  tuza::net::BufReader reader(ctx, input);
  for (const std::string_view line : reader.lines()) {
    if (!websocket::is_utf8(line)) {
      say("a line that is no UTF-8 is not sent");
    } else if (!lines.send(ctx, std::string(line))) {
      return;
    }
  }
  if (reader.error() && !ctx.done()) say(reader.error()->message());
  lines.close();
}

// Whether trying again would change nothing.
bool is_final(const tuza::Error& error) {
  const int status = http::status_of(error).value_or(0);
  return error.is(tuza::Errc::kBadAddress) || (status >= 400 && status < 500);
}

class Talk {
 public:
  Talk(Context ctx, tuza::Chan<std::string>& lines) : ctx_(std::move(ctx)), lines_(lines) {}

  // Until the connection or `ctx` ends, or there are no more lines. What has ended it.
  tuza::Error on(websocket::Connection& socket) {
    tuza::CancellableContext connected = with_cancel(ctx_);
    tuza::WaitGroup writer;
    writer.go([&] { write(socket, connected.ctx()); });
    for (;;) {
      const Result<websocket::Message> message = socket.read(connected.ctx());
      if (!message) {
        connected.cancel();
        writer.wait();
        return message.error();
      }
      std::printf("%s\n", printable(message->data).c_str());
      std::fflush(stdout);
    }
  }
  [[nodiscard]] bool all_sent() const { return all_sent_; }

 private:
  void write(websocket::Connection& socket, const Context& connected) {
    for (;;) {
      if (!unsent_) {
        auto line = lines_.recv(connected);
        if (!line) return;  // the connection has ended
        if (!*line) break;
        unsent_ = std::move(*line);
      }
      if (!socket.write_text(connected, *unsent_)) return;
      unsent_.reset();
    }
    all_sent_ = true;
    (void)socket.close();  // read() then ends when the server has answered
  }

  const Context ctx_;
  tuza::Chan<std::string>& lines_;
  std::optional<std::string> unsent_;  // taken from `lines_`
  bool all_sent_ = false;
};

Result<void> run(const Context& ctx, std::string_view url) {
  tuza::Chan<std::string> lines(16);
  tuza::WaitGroup input;
  const tuza::CancellableContext running = with_cancel(ctx);
  input.go([&] { send_lines_to(lines, running.ctx()); });
  // Clients that have lost the same server do not come back at the same moment.
  std::minstd_rand random(std::random_device{}());
  http::Client client;
  Talk talk(ctx, lines);
  Result<void> result;
  for (std::chrono::milliseconds pause = kPauseMin; !ctx.done() && !talk.all_sent();) {
    const tuza::CancellableContext dialling = with_timeout(ctx, kDialTimeout);
    auto socket = websocket::dial(dialling.ctx(), client, url);
    if (socket) {
      say("connected");
      pause = kPauseMin;
      const tuza::Error ended = talk.on(*socket);
      if (ctx.done()) (void)socket->close(1001);
      if (ctx.done() || talk.all_sent()) break;
      say(ended.message());
    } else {
      if (is_final(socket.error())) {
        result = std::unexpected(socket.error());
        break;
      }
      if (!ctx.done()) say(socket.error().message());
    }
    (void)tuza::sleep_for(ctx, pause * std::uniform_int_distribution(50, 100)(random) / 100);
    pause = std::min(2 * pause, kPauseMax);
  }
  running.cancel();
  input.wait();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "Usage: websocket_client ws://HOST:PORT/PATH\n";
  if (argc == 2 && std::string_view(argv[1]) == "--help") return std::fputs(kUsage, stdout), 0;
  if (argc != 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "websocket_client: expected a URL\n%s", kUsage);
    return 2;
  }
  return tuza::run([argv]() -> Result<void> {
    auto signals = tuza::net::SignalSet::open({SIGTERM, SIGINT});
    if (!signals) return std::unexpected(signals.error());
    const tuza::CancellableContext stopped = with_cancel(Context::background());
    tuza::WaitGroup watch;
    watch.go([&] {
      if (signals->wait()) stopped.cancel();
    });
    const Result<void> result = run(stopped.ctx(), argv[1]);
    signals->close();
    watch.wait();
    return result;
  });
}
