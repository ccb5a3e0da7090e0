#include <tuza/framework/app/listeners.h>

#include <tuza/netpoll/inherited.h>

#include <utility>

namespace tuza {

std::expected<Listeners, std::string> open_listeners(const config::Config& config) {
  Listeners result;
  auto inherited = net::inherited_listeners();
  if (!inherited) return std::unexpected("LISTEN_FDS: " + inherited.error().message());
  for (net::InheritedListener& one : *inherited) {
    if (one.name == "admin") {
      // An admin socket is not public, so an extra one must not serve the public routes instead.
      if (result.admin) return std::unexpected("LISTEN_FDNAMES: a second socket named admin");
      result.admin = std::move(one.listener);
    } else {
      result.http.push_back(std::move(one.listener));
    }
  }
  const auto open = [&config](std::string_view setting,
                              const std::string& address) -> std::expected<net::Listener, std::string> {
    Result<net::Listener> listener = net::listen(address);
    if (listener) return std::move(*listener);
    return std::unexpected(config.place(setting) + ": " + listener.error().message());
  };
  if (result.http.empty()) {
    for (const std::string& address : config.list("http.listen")) {
      auto listener = open("http.listen", address);
      if (!listener) return std::unexpected(listener.error());
      result.http.push_back(std::move(*listener));
    }
  }
  if (const std::string& admin = config.text("admin.listen"); !result.admin && !admin.empty()) {
    auto listener = open("admin.listen", admin);
    if (!listener) return std::unexpected(listener.error());
    result.admin = std::move(*listener);
  }
  return result;
}

}  // namespace tuza
