// The server that tls_test.py talks to: HTTP over TLS, Unix-domain or inherited sockets. It prints where it
// listens, one line each, reloads on SIGHUP and ends on SIGTERM.
//
//     tls_server [--cert FILE --key FILE]... [--client-ca FILE] [--tls13] [--alpn NAME] (--listen ADDRESS |
//     --inherit)
#include <tuza/http/server.h>
#include <tuza/netpoll/inherited.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tuza;

struct Arguments {
  net::TlsServerOptions tls;
  std::string listen;
  bool inherit = false;
};

Arguments parse(int argc, char** argv) {
  Arguments args;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (name == "--cert") args.tls.certificates.push_back({value(), {}});
    if (name == "--key") args.tls.certificates.back().key_file = value();
    if (name == "--client-ca") {
      args.tls.client_ca_file = value();
      args.tls.client_auth = net::ClientAuth::kRequire;
    }
    if (name == "--tls13") args.tls.min_version = net::TlsVersion::k1_3;
    if (name == "--alpn") args.tls.alpn.push_back(value());
    if (name == "--listen") args.listen = value();
    if (name == "--inherit") args.inherit = true;
  }
  return args;
}

http::Router make_router() {
  http::Router router;
  router.handle("GET /plaintext",
                [](http::Request&, http::ResponseWriter& res) { res.text("Hello, World!"); });
  router.handle("GET /large", [](http::Request&, http::ResponseWriter& res) {
    const std::string block(100'000, 'x');
    for (int i = 0; i < 30; ++i) {
      if (!res.write(block)) return;
    }
  });
  router.handle("POST /echo", [](http::Request& req, http::ResponseWriter& res) {
    if (const auto body = req.body()) res.send("application/octet-stream", *body);
  });
  return router;
}

Result<std::vector<net::Listener>> listeners(const Arguments& args) {
  std::vector<net::Listener> all;
  if (args.inherit) {
    auto inherited = net::inherited_listeners();
    if (!inherited) return std::unexpected(inherited.error());
    for (auto& [name, listener] : *inherited) {
      std::printf("inherited %s\n", name.c_str());
      all.push_back(std::move(listener));
    }
    return all;
  }
  auto listener = net::listen(args.listen);
  if (!listener) return std::unexpected(listener.error());
  all.push_back(std::move(*listener));
  return all;
}

Result<void> serve(const Arguments& args) {
  Result<net::SignalSet> signals = net::SignalSet::open({SIGTERM, SIGHUP});
  if (!signals) return std::unexpected(signals.error());
  std::shared_ptr<net::TlsServer> tls;
  if (!args.tls.certificates.empty()) {
    auto loaded = net::TlsServer::load(args.tls);
    if (!loaded) return std::unexpected(loaded.error());
    tls = *loaded;
  }
  Result<std::vector<net::Listener>> opened = listeners(args);
  if (!opened) return std::unexpected(opened.error());
  std::vector<std::unique_ptr<http::Server>> servers;
  WaitGroup serving;
  for (net::Listener& listener : *opened) {
    if (tls) listener.use_tls(tls);
    http::Server& server = *servers.emplace_back(std::make_unique<http::Server>(make_router()));
    if (Result<void> listening = server.listen(std::move(listener)); !listening) return listening;
    std::printf("listening %s\n", server.address().c_str());
    serving.go([&server] { (void)server.serve(); });
  }
  std::fflush(stdout);
  while (const Result<int> signal = signals->wait()) {
    if (*signal == SIGTERM) break;
    const Result<void> reloaded = tls ? tls->reload() : Result<void>{};
    std::printf("%s\n", reloaded ? "reloaded" : reloaded.error().message().c_str());
    std::fflush(stdout);
  }
  for (const auto& server : servers) server->shutdown();
  serving.wait();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments args = parse(argc, argv);
  return tuza::run([&args] {
    const Result<void> served = serve(args);
    if (!served) std::fprintf(stderr, "%s\n", served.error().message().c_str());
    return served ? 0 : 1;
  });
}
