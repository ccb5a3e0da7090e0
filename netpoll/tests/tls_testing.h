// Helpers shared by the tests of TLS: an authority, certificates made at test time, and connected pairs.
#pragma once

#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tls.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace tuza::net::testing {

struct CertificateWish {
  std::string common_name = "localhost";
  std::vector<std::string> names = {"DNS:localhost", "IP:127.0.0.1"};  // subject alternative names
  long valid_for_s = 3600;                                             // negative: it has expired
  bool is_authority = false;
};

// An authority with a directory of its own, for the length of a scope. Not on a goroutine.
class Authority {
 public:
  explicit Authority(const std::string& common_name = "Tuza's test authority");
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // Makes `name`.crt and `name`.key, replacing existing ones.
  TlsCertificate issue(const std::string& name, const CertificateWish& wish = {});
  [[nodiscard]] std::string file() const { return (folder_ / "ca.crt").string(); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Writes a file with that text.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  struct Secrets;
  std::filesystem::path folder_;
  std::unique_ptr<Secrets> secrets_;
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : site_(authority_.issue("site")) {}

  [[nodiscard]] TlsServerOptions server_options() const { return {.certificates = {site_}}; }
  [[nodiscard]] TlsClientOptions client_options() const {
    return {.ca_file = authority_.file(), .server_name = "localhost"};
  }
  // Both sides of one handshake; an end whose handshake failed has the reason.
  struct Ends {
    Result<Conn> client;
    Result<Conn> server;
  };
  static Ends meet(const std::shared_ptr<TlsServer>& server, const std::shared_ptr<TlsClient>& client,
                   std::string_view name = {});
  Ends meet(TlsServerOptions server, TlsClientOptions client, std::string_view name = {});
  // A handshake that must succeed.
  TcpPair pair();

  Authority authority_;
  TlsCertificate site_;
};

// The message of the error, "" if there is none.
template <class T>
std::string why(const Result<T>& result) {
  return result ? "" : result.error().message();
}

}  // namespace tuza::net::testing
