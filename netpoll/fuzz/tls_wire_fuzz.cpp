// Fuzz target: the ciphertext path of TLS (tls/wire.h) with real SSL objects, in memory.
//
//   - Any bytes from the peer, in any pieces, before, during and after the handshake, end in an error with a message or in
//     a wait for more bytes. A wait means that all input is consumed: nothing spins. Each call makes progress.
//   - A handshake whose bytes arrive in any pieces succeeds, and data arrives intact in both directions.
//   - If a byte on the way is changed, the receiver gets nothing that was not sent.
//
// The input: mode, place (2 bytes), then the peer's bytes, or the sizes of the pieces. OpenSSL's random numbers differ in
// each run, so coverage varies a little; the promises hold for all of them.
//
// Covers: netpoll/tls/wire.cpp, netpoll/tls/wire.h, netpoll/tls/openssl.cpp
#include <openssl/x509.h>
#include <tuza/netpoll/tls/context.h>
#include <tuza/netpoll/tls/wire.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <cstring>

namespace tuza::net::tls {
namespace {

using fuzz::expect;

constexpr int kTls12 = 4;  // bit of the mode

Owner<SSL_CTX> server_context() {
  Owner<SSL_CTX> context = std::move(*make_context(TLS_server_method(), TlsVersion::k1_2));
  const Owner<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owner<X509> certificate(X509_new());
  X509* c = certificate.get();
  ASN1_INTEGER_set(X509_get_serialNumber(c), 1);
  X509_gmtime_adj(X509_getm_notBefore(c), 0);
  X509_gmtime_adj(X509_getm_notAfter(c), 86'400);
  X509_set_pubkey(c, key.get());
  const bool made = X509_sign(c, key.get(), EVP_sha256()) > 0 &&
                    SSL_CTX_use_certificate(context.get(), c) == 1 &&
                    SSL_CTX_use_PrivateKey(context.get(), key.get()) == 1;
  expect(made, "a server's context can be made");
  return context;
}

// One end of a connection, used as tls/stream.cpp uses it.
class End {
 public:
  End(SSL_CTX* context, bool server, bool tls12) : ssl_(SSL_new(context)) {
    BIO* bio = wire_.make_bio();
    expect(ssl_ != nullptr && bio != nullptr, "an SSL object can be made");
    SSL_set_bio(ssl_.get(), bio, bio);
    if (tls12) SSL_set_max_proto_version(ssl_.get(), TLS1_2_VERSION);
    if (server) {
      SSL_set_accept_state(ssl_.get());
    } else {
      SSL_set_connect_state(ssl_.get());
    }
  }

  // Receives bytes as they come from a socket, at least one, and continues until more are needed.
  void receive(std::string_view bytes) {
    if (failed_ || ended_) return;
    Refill refill;
    std::memcpy(refill.take().data(), bytes.data(), bytes.size());
    refill.filled(bytes.size());
    refill.move_into(wire_.in);
    proceed(bytes.size());
  }
  void start() { proceed(0); }

  void write(std::string_view data) {
    std::size_t n = 0;
    const int result = SSL_write_ex(ssl_.get(), data.data(), data.size(), &n);
    expect(result == 1 && n == data.size(), "a write that has room succeeds", data);
  }
  void end_stream() { (void)SSL_shutdown(ssl_.get()); }

  // Takes what is to be sent, at most `size` bytes.
  std::string take(std::size_t size) {
    const std::span<std::byte> unread = wire_.out.unread();
    const std::size_t n = std::min(size, unread.size());
    std::string bytes(reinterpret_cast<const char*>(unread.data()), n);
    if (n > 0) wire_.out.consume(n);
    return bytes;
  }

  [[nodiscard]] bool shaken() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const std::string& received() const { return received_; }

 private:
  void proceed(std::size_t bytes) {
    arrived_bytes_ += bytes;
    for (;;) {
      clear_errors();
      char data[512];
      std::size_t n = 0;
      const bool was_shaken = shaken();
      const int result =
          was_shaken ? SSL_read_ex(ssl_.get(), data, sizeof data, &n) : SSL_do_handshake(ssl_.get());
      if (result > 0) {
        // So the loop ends: records that expand do not exist.
        expect(was_shaken ? n > 0 : shaken(), "each call makes progress");
        received_.append(data, n);
        expect(received_.size() < arrived_bytes_ || received_.empty(), "data is shorter than its records");
        continue;
      }
      switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
          expect(wire_.in.empty(), "OpenSSL waits only if it has consumed all input");
          clear_errors();
          return;
        case SSL_ERROR_WANT_WRITE:
          expect(wire_.out.room() < Buffer::kBytes, "OpenSSL waits for room only if there is output");
          clear_errors();
          failed_ = true;  // the peer causes output without reading it: a stream stops reading here
          return;
        case SSL_ERROR_ZERO_RETURN: ended_ = true; return;
        default: {
          const std::error_code error = take_error(ssl_.get());
          expect(error && !error.message().empty(), "a failure has a message");
          failed_ = true;
          return;
        }
      }
    }
  }

  Wire wire_;
  bool failed_ = false;
  bool ended_ = false;
  std::size_t arrived_bytes_ = 0;
  std::string received_;
  Owner<SSL> ssl_;  // destroyed before wire_
};

// The sizes of the pieces that a stream arrives in: the bytes of the input, again and again.
class Pieces {
 public:
  explicit Pieces(std::string_view sizes) : sizes_(sizes) {}
  std::size_t next() {
    if (sizes_.empty()) return Buffer::kBytes;
    const auto byte = static_cast<std::uint8_t>(sizes_[at_++ % sizes_.size()]);
    return byte < 0x80 ? std::size_t{1} + byte : (std::size_t{byte} - 0x7f) * 64;
  }

 private:
  std::string_view sizes_;
  std::size_t at_ = 0;
};

// Carries bytes both ways until both ends wait. The byte number `*changed` of the client's stream is changed.
void carry(End& client, End& server, Pieces& pieces, std::size_t* changed) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const bool to_server : {true, false}) {
      End& from = to_server ? client : server;
      std::string bytes = from.take(pieces.next());
      if (bytes.empty()) continue;
      moved = true;
      if (to_server && changed != nullptr) {
        if (*changed < bytes.size()) bytes[*changed] = static_cast<char>(bytes[*changed] ^ 0x41);
        *changed -= bytes.size();  // wraps around once it is done, beyond every stream
      }
      (to_server ? server : client).receive(bytes);
    }
  }
}

std::string message(std::string_view bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += bytes.empty() ? 'x' : bytes[i % bytes.size()];
  return text;
}

void check_pair(End& client, End& server, std::string_view bytes, std::size_t place, bool change) {
  Pieces pieces(bytes);
  std::size_t at = place;
  std::size_t* const changed = change ? &at : nullptr;
  client.start();
  carry(client, server, pieces, changed);
  if (!change) {
    expect(client.shaken() && server.shaken() && !client.failed() && !server.failed(),
           "a handshake succeeds");
  }
  if (client.failed() || server.failed() || !client.shaken() || !server.shaken()) return;
  const std::string question = message(bytes, place % 9000), answer = message(bytes, place % 5000 + 1);
  if (!question.empty()) client.write(question);
  server.write(answer);
  client.end_stream();
  carry(client, server, pieces, changed);
  expect(question.starts_with(server.received()), "the server gets nothing that was not sent",
         server.received());
  if (change) return;
  expect(server.received() == question && server.ended(), "the question arrives, and its end",
         server.received());
  expect(client.received() == answer, "the answer arrives", client.received());
  server.end_stream();
  carry(client, server, pieces, nullptr);
  expect(client.ended(), "the client sees the end");
}

// The peer's bytes are the input: from the first byte on, or behind a good handshake.
void check_hostile(End& end, std::string_view bytes, std::size_t piece) {
  end.start();
  while (!bytes.empty() && !end.failed() && !end.ended()) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    end.receive(part);
    (void)end.take(Buffer::kBytes);
  }
  expect(end.received().empty(), "bytes without a key are not data", end.received());
}

void check_wire(fuzz::Input input) {
  static const Owner<SSL_CTX> servers = server_context();
  static const Owner<SSL_CTX> clients = std::move(*make_context(TLS_client_method(), TlsVersion::k1_2));
  const int mode = input.byte();
  const std::size_t place = input.number(2);
  const std::string_view bytes = input.rest();
  const bool tls12 = (mode & kTls12) != 0;
  End client(clients.get(), false, tls12), server(servers.get(), true, false);
  switch (mode & 3) {
    case 0: return check_hostile(server, bytes, 1 + place);
    case 1: return check_hostile(client, bytes, 1 + place);
    case 2: return check_pair(client, server, bytes, place, false);
    default: break;
  }
  if ((mode & 8) == 0) return check_pair(client, server, bytes, place, true);
  Pieces whole{{}};
  client.start();
  carry(client, server, whole, nullptr);
  expect(client.shaken() && server.shaken(), "a handshake succeeds");
  check_hostile(server, bytes, 1 + place);
}

}  // namespace
}  // namespace tuza::net::tls

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool started = (tuza::net::tls::start_openssl(), true);
  (void)started;
  tuza::net::tls::check_wire({data, size});
  return 0;
}
