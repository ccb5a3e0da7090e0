// The code on docs/guide/streams.md.
#include <tuza/framework/asio_sync_stream.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <asio/read_until.hpp>
#include <asio/write.hpp>

#include <poll.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace streams_page {

using namespace std::chrono_literals;

std::string answer_to(std::string_view line) { return std::string(line); }
struct Library {
  int descriptor();
  bool wants_to_read();
  void step();
};
void parse_document(std::istream& from, std::ostream& to) { to << from.rdbuf(); }

//! [lines]
void talk(tuza::net::Conn& conn) {
  tuza::net::BufReader in(conn);
  for (auto line : in.lines()) {
    if (!conn.write_all(answer_to(line) + "\n")) return;
  }
  if (in.error()) tuza::log_line(tuza::LogLevel::kWarning, in.error()->message());
}
//! [lines]

//! [pieces]
// "$5\r\nhello\r\n"
tuza::Result<std::string> bulk_string(tuza::net::BufReader& in) {
  auto head = in.read_line();
  if (!head) return std::unexpected(head.error());
  std::size_t bytes = 0;
  std::from_chars(head->data() + 1, head->data() + head->size(), bytes);
  auto text = in.read_string(bytes);
  if (!text) return text;
  if (auto end = in.read_line(); !end) return std::unexpected(end.error());
  return text;
}
//! [pieces]

//! [replies]
tuza::Result<void> serve(tuza::net::Conn& conn) {
  tuza::net::BufReader in(conn);
  tuza::net::BufWriter out(conn);
  for (;;) {
    if (in.buffered().empty()) TUZA_TRY(out.flush());  // before a wait for the next request
    TUZA_TRY(auto request, bulk_string(in));
    TUZA_TRY(out.write_all("+"));
    TUZA_TRY(out.write_all(answer_to(request)));
    TUZA_TRY(out.write_all("\r\n"));
  }
}
//! [replies]

//! [relay]
tuza::Result<void> proxy(tuza::net::Conn& client) {
  auto server = tuza::net::dial("tcp", "127.0.0.1:7001");
  if (!server) return std::unexpected(server.error());
  auto relayed = tuza::net::relay(tuza::Context::background(), client, *server, {.idle_timeout = 1h});
  if (!relayed) return std::unexpected(relayed.error());
  return {};
}
//! [relay]

//! [within]
tuza::Result<std::string> first_answer(const tuza::Context& parent, std::string_view address) {
  auto [ctx, cancel] = tuza::with_timeout(parent, 2s);  // for all of it
  TUZA_TRY(auto conn, tuza::net::dial(ctx, "tcp", address));
  TUZA_TRY(conn.write_all(ctx, "hello\n"));
  std::string answer(512, '\0');
  TUZA_TRY(const std::size_t size, conn.read(ctx, std::span(answer)));  // 0: the peer has closed
  answer.resize(size);
  return answer;
}
//! [within]

//! [iostream]
void with_iostreams(tuza::net::Conn& conn) {
  tuza::net::ConnStream stream(conn);
  parse_document(stream, stream);
  stream << std::flush;
}
//! [iostream]

//! [asio]
void with_asios_algorithms(tuza::net::Conn& conn) {
  tuza::AsioSyncStream stream(conn);
  std::string line;
  asio::read_until(stream, asio::dynamic_buffer(line), '\n');
  asio::write(stream, asio::buffer(line));
}
//! [asio]

//! [wait]
tuza::Result<void> drive(Library& library, const tuza::Context& ctx) {
  while (library.wants_to_read()) {
    auto ready = tuza::net::wait_readable(ctx, library.descriptor());
    if (!ready) return ready;  // ctx.cause() if the context ended first
    library.step();
  }
  return {};
}
//! [wait]

int Library::descriptor() { return 0; }
bool Library::wants_to_read() { return false; }
void Library::step() {}

}  // namespace streams_page
