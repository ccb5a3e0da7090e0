#include <tuza/framework/app/listeners.h>

#include <tuza/netpoll/inherited.h>

#include <utility>

namespace tuza {

Result<Listeners> open_listeners(const config::Config& config) {
  Listeners result;
  auto inherited = net::inherited_listeners();
  if (!inherited) return std::unexpected(inherited.error());
  for (net::InheritedListener& one : *inherited) {
    if (one.name == "admin") {
      // An admin socket is not public, so an extra one must not serve the public routes instead.
      if (result.admin)
        return std::unexpected(Error(Errc::kBadAddress, "listen", "a second socket named admin"));
      result.admin = std::move(one.listener);
    } else {
      result.http.push_back(std::move(one.listener));
    }
  }
  if (result.http.empty()) {
    for (const std::string& address : config.list("http.listen")) {
      Result<net::Listener> listener = net::listen(address);
      if (!listener) return std::unexpected(listener.error());
      result.http.push_back(std::move(*listener));
    }
  }
  const std::string& admin = config.text("admin.listen");
  if (!result.admin && !admin.empty()) {
    Result<net::Listener> listener = net::listen(admin);
    if (!listener) return std::unexpected(listener.error());
    result.admin = std::move(*listener);
  }
  return result;
}

}  // namespace tuza
