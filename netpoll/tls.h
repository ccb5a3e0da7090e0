// Public header, part of <tuza/net.h>.
//
// TLS for connections: server and client, based on OpenSSL 3, whose headers are not exposed.
//
//     auto tls = tuza::net::TlsServer::load({.certificates = {{"cert.pem", "key.pem"}}}).value();
//     auto listener = tuza::net::listen("tcp", ":443").value();
//     listener.use_tls(tls);  // accepted connections are TLS; Conn hides the difference
//
//     auto client = tuza::net::TlsClient::load({}).value();
//     auto conn = client->dial("tcp", "example.org:443").value();  // certificate and name are verified
//
// The handshake of an accepted connection happens in its first read or write, or in Conn::handshake(), on the
// calling goroutine. A handshake failure is an error of that call, and is_tls_error() is true for it: "tls
// handshake example.org: certificate verify failed: certificate has expired".
//
// TLS 1.2 and 1.3, with the ciphers and groups of Mozilla's "intermediate" list, without finite-field
// Diffie-Hellman: always AEAD and forward secrecy. For resumed TLS 1.2 sessions, forward secrecy begins when
// their ticket key is forgotten, after a day at most. No compression, no renegotiation, no early data.
//
// Thread-safe. Functions that read files (load, reload) are blocking calls, and park; so does dial(). A
// client that trusts the system's authorities may also read single CA files during a handshake; that read
// holds the P at first.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
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
  kRequest,  // a certificate that is sent must be valid; sending none is allowed
  kRequire,
};

// A certificate, followed by its chain of intermediates, and its private key; both PEM, the key without a
// passphrase.
struct TlsCertificate {
  std::string cert_file{};
  std::string key_file{};
};

// When the first certificate of a PEM file is valid. Errors as in TlsServer::load(). Reads the file: a blocking call, and
// parks.
struct TlsValidity {
  std::chrono::system_clock::time_point from, until;
};
[[nodiscard]] Result<TlsValidity> tls_validity(const std::string& cert_file);

struct TlsServerOptions {
  // At least one. The client's server name (SNI) selects by subject alternative name, wildcards included,
  // exact names first; the first certificate is for all other clients. If two certificates share a name, the
  // first has priority. However, if they have all names in common and different key types (RSA, ECDSA), the
  // client's capabilities decide.
  std::vector<TlsCertificate> certificates{};
  std::string client_ca_file{};  // PEM; authorities that may sign clients' certificates. Needed unless kNone
  ClientAuth client_auth = ClientAuth::kNone;
  TlsVersion min_version = TlsVersion::k1_2;
  // Application protocols that the server speaks, in order of preference; for example "http/1.1". A client
  // that offers protocols, but none of these, is refused. Empty: the server does not answer the ALPN
  // extension.
  std::vector<std::string> alpn{};
  std::chrono::milliseconds handshake_timeout{10'000};
};

// The state of a TLS server, shared by listeners and connections.
class TlsServer {
 public:
  // The error names the file: it cannot be read, is not PEM, or certificate and key do not match.
  [[nodiscard]] static Result<std::shared_ptr<TlsServer>> load(TlsServerOptions options);
  explicit TlsServer(std::unique_ptr<TlsServerState> state);  // load() calls it
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // Reads the same files again. Handshakes that begin from now on use the new content; existing connections
  // are unaffected, and tickets remain valid. On an error, which names the file, nothing changes.
  [[nodiscard]] Result<void> reload();

  [[nodiscard]] TlsServerState& state() { return *state_; }  // for connections

 private:
  const std::unique_ptr<TlsServerState> state_;
};

struct TlsClientOptions {
  std::string ca_file{};      // PEM; authorities to trust. Empty: those that the system trusts
  std::string server_name{};  // for SNI and for verification. Empty: the dialled host
  std::vector<std::string> alpn{};
  // For servers that request a certificate; empty: none.
  TlsCertificate certificate{};
  TlsVersion min_version = TlsVersion::k1_2;
  // DANGEROUS: an attacker on the network path can read and change everything. For tests.
  bool insecure_skip_verify = false;
  std::chrono::milliseconds handshake_timeout{10'000};
};

// The state of a TLS client, shared by its connections. Caches the sessions of up to 256 servers, which
// shortens later handshakes with them.
class TlsClient : public std::enable_shared_from_this<TlsClient> {
 public:
  // Errors as in TlsServer::load().
  [[nodiscard]] static Result<std::shared_ptr<TlsClient>> load(TlsClientOptions options);
  explicit TlsClient(std::unique_ptr<TlsClientState> state);  // load() calls it
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Connects and performs the handshake. An error if the server's certificate has expired, is for other
  // names, or is not signed by a trusted authority. `network` as for net::dial(); "unix" is allowed too, but
  // requires server_name. `deadline` limits connecting, handshake_timeout the handshake. Parks.
  [[nodiscard]] Result<Conn> dial(std::string_view network, std::string_view address,
                                  TimePoint deadline = kNoDeadline);
  [[nodiscard]] Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address);
  // The same over an existing connection, for example through a proxy. `server_name`: the options' if empty.
  [[nodiscard]] Result<Conn> start(Conn conn, std::string_view server_name = {});
  [[nodiscard]] Result<Conn> start(const Context& ctx, Conn conn, std::string_view server_name = {});

 private:
  [[nodiscard]] Result<Conn> start(Conn conn, std::string_view server_name, const Context* ctx);
  const std::unique_ptr<TlsClientState> state_;
};

// The result of a handshake.
struct TlsInfo {
  std::string version;       // "TLSv1.3"
  std::string cipher;        // "TLS_AES_128_GCM_SHA256"
  std::string alpn;          // empty: none
  std::string server_name;   // name that the client asked for; empty: none
  std::string peer_subject;  // of the peer's certificate, "CN=...,O=..."; empty: the peer sent none
  bool resumed = false;      // no certificates were exchanged: those of the original handshake apply
};

// True for errors of TLS itself: a refused handshake, a broken record. False for a lost connection.
bool is_tls_error(const Error& error);
// True for the error of a server's handshake whose client has begun with plain HTTP; its subject is the method. No alert was
// sent: the answer may be in plain text.
bool is_plain_http(const Error& error);

}  // namespace tuza::net
