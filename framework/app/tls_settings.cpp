#include <tuza/framework/app/tls_settings.h>

#include <chrono>
#include <utility>

namespace tuza {

Result<std::shared_ptr<net::TlsServer>> load_tls(const config::Config& config) {
  net::TlsServerOptions options;
  if (const std::string& certificate = config.text("tls.certificate"); !certificate.empty()) {
    options.certificates.push_back({.cert_file = certificate, .key_file = config.text("tls.key")});
  }
  for (const config::List& row : std::get<config::Rows>(config.value("tls.certificates"))) {
    options.certificates.push_back({.cert_file = row[0], .key_file = row[1]});
  }
  if (options.certificates.empty()) return std::shared_ptr<net::TlsServer>();
  options.client_ca_file = config.text("tls.client_ca");
  const std::string& client_auth = config.text("tls.client_auth");
  options.client_auth = client_auth == "require"   ? net::ClientAuth::kRequire
                        : client_auth == "request" ? net::ClientAuth::kRequest
                                                   : net::ClientAuth::kNone;
  options.min_version =
      config.text("tls.min_version") == "1.3" ? net::TlsVersion::k1_3 : net::TlsVersion::k1_2;
  options.alpn = {"http/1.1"};
  options.handshake_timeout = std::chrono::milliseconds(config.number("tls.handshake_timeout"));
  return net::TlsServer::load(std::move(options));
}

}  // namespace tuza
