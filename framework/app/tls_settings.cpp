#include <tuza/framework/app/tls_settings.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace tuza {
namespace {

struct Pair {
  net::TlsCertificate files;
  std::string_view certificate_setting, key_setting;
};

std::vector<Pair> pairs_of(const config::Config& config) {
  std::vector<Pair> pairs;
  if (const std::string& certificate = config.text("tls.certificate"); !certificate.empty()) {
    pairs.push_back(
        {{.cert_file = certificate, .key_file = config.text("tls.key")}, "tls.certificate", "tls.key"});
  }
  for (const config::List& row : std::get<config::Rows>(config.value("tls.certificates"))) {
    pairs.push_back({{.cert_file = row[0], .key_file = row[1]}, "tls.certificates", "tls.certificates"});
  }
  return pairs;
}

net::TlsServerOptions options_without_certificates(const config::Config& config) {
  net::TlsServerOptions options;
  options.client_ca_file = config.text("tls.client_ca");
  const std::string& client_auth = config.text("tls.client_auth");
  options.client_auth = client_auth == "require"   ? net::ClientAuth::kRequire
                        : client_auth == "request" ? net::ClientAuth::kRequest
                                                   : net::ClientAuth::kNone;
  options.min_version =
      config.text("tls.min_version") == "1.3" ? net::TlsVersion::k1_3 : net::TlsVersion::k1_2;
  options.alpn = {"http/1.1"};
  options.handshake_timeout = std::chrono::milliseconds(config.number("tls.handshake_timeout"));
  return options;
}

// The setting whose file an error of TlsServer::load() is about.
std::string_view setting_of(const Error& error, const std::vector<Pair>& pairs) {
  const std::string& subject = error.subject();
  if (error.op() == "load authorities") return "tls.client_ca";
  for (const Pair& pair : pairs) {
    const auto& [certificate, key] = pair.files;
    // "KEY for CERTIFICATE": they do not match.
    if (error.op() == "load key" && (subject == key || subject.starts_with(key + " for ")))
      return pair.key_setting;
    if (error.op() == "load certificate" && subject == certificate) return pair.certificate_setting;
  }
  return pairs.front().certificate_setting;
}

std::string message(const config::Config& config, const Error& error, const std::vector<Pair>& pairs) {
  return config.place(setting_of(error, pairs)) + ": " + error.message();
}

// Of the certificate itself: an authority behind it may have ended where clients know a newer one.
std::optional<std::string> not_valid_now(const config::Config& config, const Pair& pair) {
  const auto now = std::chrono::system_clock::now();
  const Result<net::TlsValidity> valid = net::tls_validity(pair.files.cert_file);
  if (!valid) return message(config, valid.error(), {pair});
  const std::string place = config.place(pair.certificate_setting) + ": " + pair.files.cert_file;
  if (now > valid->until) return place + ": the certificate has expired";
  if (now < valid->from) return place + ": the certificate is not valid yet";
  return std::nullopt;
}

}  // namespace

std::string tls_problem(const config::Config& config, const Error& error) {
  return message(config, error, pairs_of(config));
}

std::expected<std::shared_ptr<net::TlsServer>, std::string> load_tls(const config::Config& config) {
  const std::vector<Pair> pairs = pairs_of(config);
  if (pairs.empty()) return std::shared_ptr<net::TlsServer>();
  net::TlsServerOptions options = options_without_certificates(config);
  for (const Pair& pair : pairs) options.certificates.push_back(pair.files);
  Result<std::shared_ptr<net::TlsServer>> loaded = net::TlsServer::load(std::move(options));
  if (!loaded) return std::unexpected(message(config, loaded.error(), pairs));
  return std::move(*loaded);
}

std::vector<std::string> tls_not_valid_now(const config::Config& config) {
  std::vector<std::string> problems;
  for (const Pair& pair : pairs_of(config)) {
    if (std::optional<std::string> problem = not_valid_now(config, pair))
      problems.push_back(*std::move(problem));
  }
  return problems;
}

void check_tls(const config::Config& config, config::Problems& problems) {
  const auto complain = [&problems](const std::string& problem) {
    // Authorities are read with each certificate.
    if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
  };
  for (const Pair& pair : pairs_of(config)) {
    net::TlsServerOptions options = options_without_certificates(config);
    options.certificates = {pair.files};
    if (const auto loaded = net::TlsServer::load(std::move(options)); !loaded) {
      complain(message(config, loaded.error(), {pair}));
    } else if (const std::optional<std::string> problem = not_valid_now(config, pair)) {
      complain(*problem);
    }
  }
}

}  // namespace tuza
