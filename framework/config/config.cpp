#include <tuza/framework/config/config.h>

#include <tuza/framework/config/suggest.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/socket/localhost.h>
#include <tuza/sched/rt/base/check.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tuza::config {
namespace {

// Origins of values.
constexpr std::string_view kDefault = "default";  // no source has set the value
constexpr std::string_view kListenOption = "--listen";

void read_command_line(Config& config, const Sources& sources, Problems& problems) {
  const Schema& schema = config.schema();
  List listen;
  for (const std::string& address : sources.listen) {
    const Key& key = *schema.find("http.listen");
    if (parse_text(key, address)) {
      const List some = std::get<List>(*parse_text(key, address));
      listen.insert(listen.end(), some.begin(), some.end());
    } else {
      problems.push_back(std::string(kListenOption) + ": expected " + expected(key) + ", got " +
                         config::quoted(address));
    }
  }
  if (!listen.empty()) config.set("http.listen", std::move(listen), std::string(kListenOption));
  for (const auto& [name, text] : sources.set) {
    if (const Key* key = schema.find(name)) {
      read_text(config, *key, text, "--set " + name, problems);
      continue;
    }
    std::vector<std::string_view> known;
    for (const Key& key : schema.keys()) known.push_back(key.name);
    if (name.empty()) {
      problems.push_back("--set =" + text + ": a setting has a name: --set KEY=VALUE");
      continue;
    }
    const std::string_view meant = nearest(name, known);
    problems.push_back("--set " + name + ": unknown setting" +
                       (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
  }
}

}  // namespace

Config::Config(const Schema& schema) : schema_(&schema) {
  for (const Key& key : schema.keys()) entries_.push_back({key.by_default, std::string(kDefault)});
}

std::size_t Config::index(std::string_view name) const {
  const Key* key = schema_->find(name);
  if (key == nullptr) rt::fatal("a setting was requested that is not in the schema");
  return static_cast<std::size_t>(key - schema_->keys().data());
}

void Config::set(std::string_view name, Value value, std::string origin) {
  entries_[index(name)] = {std::move(value), std::move(origin)};
}

std::string Config::place(std::string_view name) const {
  const std::string& from = origin(name);
  const std::string key(name);
  if (from == kDefault) return key + " (default)";
  if (from == kListenOption) return from + " (" + key + ")";
  const bool says_name = from.starts_with("TUZA_") || from.starts_with("--set ");
  return says_name ? from : from + ":" + key;
}

std::expected<Config, Problems> load(const Schema& schema, const Sources& sources) {
  Config config(schema);
  Problems problems;
  if (!sources.file.empty()) read_file(config, sources.file, problems);
  read_environment(config, sources.environment, problems);
  read_command_line(config, sources, problems);
  check_together(config, problems);
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return config;
}

namespace {

constexpr std::string_view kUnix = "unix:";

// Where a socket would be, whatever the spelling. The name of another host would have to be asked for, and stays as it is.
struct Place {
  std::optional<net::Endpoint> endpoint;  // nullopt: the text is all there is
  std::string text;

  [[nodiscard]] bool of_any_port() const {
    return endpoint ? endpoint->port() == 0 : text.ends_with(":0") && !text.starts_with(kUnix);
  }
  bool operator==(const Place&) const = default;
};

Place place_of(std::string_view address) {
  if (address.starts_with(kUnix)) {
    const std::filesystem::path path = address.substr(kUnix.size());
    std::error_code unreadable;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(path, unreadable);
    return {std::nullopt, std::string(kUnix) + (unreadable ? path.lexically_normal() : whole).string()};
  }
  const std::string_view host = address.substr(0, address.rfind(':'));
  // Listened on by its first address.
  const Result<net::Endpoint> endpoint =
      net::parse_endpoint(net::is_localhost(host) ? "127.0.0.1" + std::string(address.substr(host.size()))
                                                  : std::string(address));
  if (!endpoint) return {std::nullopt, std::string(address)};
  return {net::Endpoint(endpoint->address().unmapped(), endpoint->port()), {}};
}

// Whether one socket would be listened on twice. Port 0 is a different port for each.
bool same_socket(std::string_view a, std::string_view b) {
  const Place one = place_of(a);
  return one == place_of(b) && !one.of_any_port();
}

// Whether two addresses need the same socket, which the one that covers all addresses of this machine takes from others.
bool collide(std::string_view a, std::string_view b) {
  const std::optional<net::Endpoint> one = place_of(a).endpoint, other = place_of(b).endpoint;
  if (!one || !other || one->port() != other->port()) return same_socket(a, b);
  const bool all = one->address().is_unspecified() || other->address().is_unspecified();
  return one->port() != 0 && (all || one == other);
}

}  // namespace

// A problem that concerns two keys is reported at the key that the user has set.
void check_together(const Config& config, Problems& problems) {
  const auto complain = [&](std::string_view name, const std::string& what) {
    problems.push_back(config.place(name) + ": " + what);
  };
  const auto given = [&](std::string_view name) { return !config.text(name).empty(); };
  const auto need = [&](std::string_view name, std::string_view other) {
    complain(name, "expected " + std::string(other) + " beside it, got none");
  };
  if (given("tls.certificate") && !given("tls.key")) need("tls.certificate", "tls.key");
  if (given("tls.key") && !given("tls.certificate")) need("tls.key", "tls.certificate");
  const bool asks_clients = config.text("tls.client_auth") != "none";
  if (asks_clients && !given("tls.client_ca")) need("tls.client_auth", "tls.client_ca");
  if (!asks_clients && given("tls.client_ca")) {
    complain("tls.client_ca", "expected tls.client_auth beside it, \"request\" or \"require\", got \"none\"");
  }
  // Without a server certificate there is no TLS, and no client would be asked for its certificate.
  const bool tls = given("tls.certificate") || !std::get<Rows>(config.value("tls.certificates")).empty();
  if (!tls && asks_clients) need("tls.client_auth", "tls.certificate");
  if (config.text("http.proxy_protocol") != "off" && config.list("http.trusted_proxies").empty()) {
    need("http.proxy_protocol", "http.trusted_proxies");
  }
  const std::string& admin = config.text("admin.listen");
  const List& listen = config.list("http.listen");
  for (auto at = listen.begin(); at != listen.end(); ++at) {
    if (std::none_of(listen.begin(), at, [&](const std::string& other) { return same_socket(*at, other); }))
      continue;
    complain("http.listen", "expected each address once, got " + config::quoted(*at) + " again");
  }
  for (const std::string& address : listen) {
    if (!collide(address, admin)) continue;
    complain("admin.listen", "expected another port than that of http.listen, " + config::quoted(address) +
                                 ", got " + config::quoted(admin));
  }
  if (config.number("http.request_line_max") > config.number("http.head_max")) {
    constexpr std::string_view kKeys[] = {"http.request_line_max", "http.head_max"};
    const std::size_t at = config.origin(kKeys[0]) == kDefault ? 1 : 0;
    complain(kKeys[at], (at == 0 ? "expected at most " : "expected at least ") + std::string(kKeys[1 - at]) +
                            ", got " +
                            config::to_toml(*config.schema().find(kKeys[at]), config.value(kKeys[at])));
  }
}

}  // namespace tuza::config
