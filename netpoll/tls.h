// Public header, part of <tuza/net.h>.
//
// TLS for connections: server and client, on OpenSSL 3, whose headers stay inside.
//
//     auto tls = tuza::net::TlsServer::load({.certificates = {{"cert.pem", "key.pem"}}}).value();
//     auto listener = tuza::net::listen("tcp", ":443").value();
//     listener.use_tls(tls);  // the connections it accepts are TLS; Conn hides the difference
//
//     auto client = tuza::net::TlsClient::load({}).value();
//     auto conn = client->dial("tcp", "example.org:443").value();  // certificate and name are verified
//
// The handshake of an accepted connection happens in its first read or write, or in Conn::handshake(), on the
// goroutine that calls it. Its failures are errors of that call, and is_tls_error() of them is true:
// "tls handshake example.org: certificate verify failed: certificate has expired".
//
// Versions 1.2 and 1.3, ciphers and groups of Mozilla's "intermediate" list, without finite-field
// Diffie-Hellman: AEAD always, and forward secrecy; for sessions of TLS 1.2 that are resumed, from when the
// key of their tickets is forgotten, a day at most. No compression, no renegotiation, no early data.
//
// Thread-safe. What reads files (load, reload) is a blocking call, and parks; so does dial(). A client that
// trusts whom the system trusts may read single files of authorities in a handshake, too: P at first.
#pragma once

#include <tuza/netpoll/tcp.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::net {

class TlsServerState;
class TlsClientState;

enum class TlsVersion : std::uint8_t { k1_2, k1_3 };

// Whether clients are asked for a certificate.
enum class ClientAuth : std::uint8_t {
  kNone,
  kRequest,  // one that is sent must be good; none is good, too
  kRequire,
};

// A certificate with what leads to its authority behind it, and its private key; both PEM, the key without a
// passphrase.
struct TlsCertificate {
  std::string cert_file{};
  std::string key_file{};
};

struct TlsServerOptions {
  // At least one. The client's server name (SNI) chooses among their subject alternative names, wildcards
  // included, exact names first; the first certificate is for everybody else. Of two that share a name the
  // first has it; but with all names the same and keys of two kinds (RSA, ECDSA), what the client understands
  // decides.
  std::vector<TlsCertificate> certificates{};
  std::string client_ca_file{};  // PEM; who may have signed clients' certificates. Needed unless kNone
  ClientAuth client_auth = ClientAuth::kNone;
  TlsVersion min_version = TlsVersion::k1_2;
  // Application protocols that the server speaks, best first; "http/1.1". A client that offers some, but none
  // of these, is refused. Empty: clients are not answered.
  std::vector<std::string> alpn{};
  std::chrono::milliseconds handshake_timeout{10'000};
};

// What a TLS server is: shared by listeners and connections.
class TlsServer {
 public:
  // The error names the file: it cannot be read, is no PEM, or certificate and key do not match.
  static Result<std::shared_ptr<TlsServer>> load(TlsServerOptions options);
  explicit TlsServer(std::unique_ptr<TlsServerState> state);  // load() calls it
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // Reads the same files again. Handshakes that begin from now on use what is in them, connections go on as
  // they are, and tickets stay good. On an error, which names the file, everything stays as it was.
  Result<void> reload();

  [[nodiscard]] TlsServerState& state() { return *state_; }  // for connections

 private:
  const std::unique_ptr<TlsServerState> state_;
};

struct TlsClientOptions {
  std::string ca_file{};      // PEM; whom to trust. Empty: the authorities that the system trusts
  std::string server_name{};  // to ask for (SNI) and to verify. Empty: the host that is dialled
  std::vector<std::string> alpn{};
  // For servers that ask for one; empty: none.
  TlsCertificate certificate{};
  TlsVersion min_version = TlsVersion::k1_2;
  // DANGEROUS: whoever sits on the way can read and change everything. For tests.
  bool insecure_skip_verify = false;
  std::chrono::milliseconds handshake_timeout{10'000};
};

// What a TLS client is: shared by its connections. Remembers the sessions of up to 256 servers, which makes
// the next handshakes with them short.
class TlsClient : public std::enable_shared_from_this<TlsClient> {
 public:
  // As TlsServer::load().
  static Result<std::shared_ptr<TlsClient>> load(TlsClientOptions options);
  explicit TlsClient(std::unique_ptr<TlsClientState> state);  // load() calls it
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Connects, and shakes hands: an error if the server's certificate has expired, is for other names, or is
  // of nobody's whom the client trusts. `network` as for net::dial(), "unix" included, for which server_name
  // must be set. `deadline` limits connecting, handshake_timeout what follows.
  Result<Conn> dial(std::string_view network, std::string_view address, TimePoint deadline = kNoDeadline);
  Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address);
  // The same over a connection that is there already, behind a proxy, say. `server_name`: options' if empty.
  Result<Conn> start(Conn conn, std::string_view server_name = {});
  Result<Conn> start(const Context& ctx, Conn conn, std::string_view server_name = {});

 private:
  Result<Conn> start(Conn conn, std::string_view server_name, const Context* ctx);
  const std::unique_ptr<TlsClientState> state_;
};

// What came out of a handshake.
struct TlsInfo {
  std::string version;       // "TLSv1.3"
  std::string cipher;        // "TLS_AES_128_GCM_SHA256"
  std::string alpn;          // empty: none
  std::string server_name;   // what the client asked for; empty: nothing
  std::string peer_subject;  // of the peer's certificate, "CN=...,O=..."; empty: it has sent none
  bool resumed = false;      // no certificates were exchanged: those of an earlier handshake count
};

// Of TLS itself: the handshake was refused, a record was broken. Not: the connection was lost.
bool is_tls_error(const Error& error);

}  // namespace tuza::net
