// Step 1: a TCP server that sends back what it reads.
#include <tuza/framework/command_line.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <array>

void echo(tuza::net::Conn& conn) {
  std::array<char, 4096> buffer;
  while (const tuza::Result<std::size_t> n = conn.read(std::span(buffer))) {
    if (*n == 0) return;  // the client has ended the stream
    if (!conn.write_all(std::string_view(buffer.data(), *n))) return;
  }
}

int main(int argc, char** argv) {
  const auto args = tuza::parse_command_line(argc, argv, "127.0.0.1:7000");
  return tuza::run([&args]() -> tuza::Result<void> {
    auto listener = args.explain(tuza::net::listen("tcp", args.listen));
    if (!listener) return std::unexpected(listener.error());
    return tuza::net::serve(*listener, echo);  // one goroutine per connection
  });
}
