// The server of websoak and of waiting: uploads, events and WebSockets.
//
//     POST /files          multipart/form-data: each file is stored, read again and removed; "BYTES SUM", a line each
//     GET  /ticks?count=N  N server-sent events, 10 ms apart, with the ids 1 to N
//     GET  /quiet          one event, and no more
//     GET  /echo           a WebSocket, compressed if the client wants that
//     GET  /plaintext
#include <tuza/framework/app.h>
#include <tuza/http/multipart.h>
#include <tuza/http/sse.h>
#include <tuza/http/websocket.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/filesystem.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

using namespace std::chrono_literals;
using tuza::http::Request;
using tuza::http::ResponseWriter;

constexpr std::size_t kFileBytesMax = 4 << 20;

// Removes the file at the end.
class Stored {
 public:
  Stored(tuza::http::Part& part, const std::string& folder) : file_(part.save(folder)) {}
  Stored(const Stored&) = delete;
  Stored& operator=(const Stored&) = delete;
  ~Stored() { (void)tuza::fs::remove(file_.path); }

  // "BYTES SUM". In pieces: malloc keeps, for each thread, twice the largest block that was freed, and this is to show
  // what the server keeps.
  [[nodiscard]] std::string summary() const {
    std::uint64_t bytes = 0, sum = 0;
    auto file = tuza::File::open(file_.path);
    if (!file) throw std::runtime_error(file.error().message());
    std::array<std::byte, 16 << 10> piece{};
    for (;;) {
      const auto read = file->read(piece);
      if (!read) throw std::runtime_error(read.error().message());
      if (*read == 0) return std::to_string(bytes) + " " + std::to_string(sum);
      bytes += *read;
      for (std::size_t i = 0; i < *read; ++i) sum += std::to_integer<std::uint64_t>(piece[i]);
    }
  }

 private:
  tuza::http::SavedFile file_;
};

void store(const std::string& folder, Request& req, ResponseWriter& res) {
  tuza::http::Multipart form(req, {.file_bytes_max = kFileBytesMax});
  std::string sums;
  for (tuza::http::Part& part : form) {
    if (!part.is_file()) continue;
    sums += Stored(part, folder).summary() + "\n";
  }
  res.text(sums);
}

void ticks(Request& req, ResponseWriter& res) {
  const auto count = req.query_value<int>("count");
  auto stream = tuza::http::sse(req, res);
  for (int id = 1; id <= count; ++id) {
    if (!stream.send({.data = "tick", .id = std::to_string(id)})) return;
    if (!tuza::sleep_for(stream.context(), 10ms)) return;
  }
}

void quiet(Request& req, ResponseWriter& res) {
  auto stream = tuza::http::sse(req, res, {.heartbeat = 1h});
  if (stream.send({.data = "quiet"})) stream.context().wait();
}

void echo(Request& req, ResponseWriter& res) {
  auto socket = tuza::http::websocket::upgrade(req, res, {.deflate = {.enabled = true}});
  if (!socket) return;
  while (const auto message = socket->read()) {
    if (!socket->write(*message)) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("web_server");
  const auto folder = app.setting("web.folder", ".", "Where uploads are stored for a moment");
  return app.run(argc, argv, [&] {
    app.router().handle("GET /plaintext", [](Request&, ResponseWriter& res) { res.text("Hello, World!"); });
    app.router().handle("POST /files", [&](Request& req, ResponseWriter& res) { store(*folder, req, res); });
    app.router().handle("GET /ticks", ticks);
    app.router().handle("GET /quiet", quiet);
    app.router().handle("GET /echo", echo);
  });
}
