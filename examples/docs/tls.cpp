// The code on docs/guide/tls.md.
#include <tuza/http.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <signal.h>

#include <chrono>
#include <memory>
#include <string>

namespace tls_page {

using namespace std::chrono_literals;

//! [server]
tuza::Result<void> serve_https(tuza::http::Router router) {
  auto tls = tuza::net::TlsServer::load(
      {.certificates = {{"cert.pem", "key.pem"}, {"other.pem", "other-key.pem"}}, .alpn = {"http/1.1"}});
  if (!tls) return std::unexpected(tls.error());  // names the file, and what is wrong with it
  auto listener = tuza::net::listen("tcp", ":443");
  if (!listener) return std::unexpected(listener.error());
  listener->use_tls(*tls);  // before the first accept()
  tuza::http::Server server(std::move(router));
  if (auto listening = server.listen(std::move(*listener)); !listening) return listening;
  return server.serve();
}
//! [server]

//! [reload]
void reload_on_hangup(const std::shared_ptr<tuza::net::TlsServer>& tls) {
  auto signals = tuza::net::SignalSet::open({SIGHUP});
  if (!signals) return;
  while (signals->wait()) {
    if (auto read = tls->reload(); !read) tuza::log_line(tuza::LogLevel::kError, read.error().message());
  }
}
//! [reload]

//! [client]
tuza::Result<std::string> ask(const tuza::Context& ctx, std::string_view request) {
  auto client = tuza::net::TlsClient::load({.ca_file = "our-ca.pem"});  // one for all connections
  if (!client) return std::unexpected(client.error());
  auto conn = (*client)->dial(ctx, "tcp", "db.example.org:5433");  // certificate and name are verified
  if (!conn) return std::unexpected(conn.error());
  if (auto sent = conn->write_all(ctx, request); !sent) return std::unexpected(sent.error());
  std::string answer(4096, '\0');
  const auto n = conn->read(ctx, std::span(answer));
  if (!n) return std::unexpected(n.error());
  answer.resize(*n);
  return answer;
}
//! [client]

//! [peer]
void greet(tuza::net::Conn& conn) {
  // Without this call, the first read or write shakes hands.
  if (auto done = conn.handshake(); !done) return;
  const auto info = conn.tls_info();  // nothing if it is not TLS
  if (info) (void)conn.write_all("Hello, " + info->peer_subject + ", over " + info->version + "\n");
}
//! [peer]

//! [inherited]
tuza::Result<void> serve_inherited(const std::shared_ptr<tuza::net::TlsServer>& tls,
                                   tuza::http::Router router) {
  auto inherited = tuza::net::inherited_listeners();
  if (!inherited) return std::unexpected(inherited.error());
  for (auto& [name, listener] : *inherited) {
    if (name != "https") continue;
    listener.use_tls(tls);
    tuza::http::Server server(std::move(router));
    if (auto listening = server.listen(std::move(listener)); !listening) return listening;
    return server.serve();
  }
  return {};
}
//! [inherited]

//! [unix]
tuza::Result<tuza::net::Conn> connect_to_app() {
  return tuza::net::dial("unix", "/run/app.sock", tuza::net::time_after_now(2s));
}
//! [unix]

}  // namespace tls_page
