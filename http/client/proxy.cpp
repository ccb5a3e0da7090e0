#include <tuza/http/client/proxy.h>

#include <tuza/http/wire/base64.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/log.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kSocksTextMax = 255;  // RFC 1929 2: a length is one byte

// `text`: without credentials.
std::unexpected<Error> bad_proxy(std::string_view text, std::string_view why,
                                 const char* operation = "parse proxy") {
  std::string shown(text.substr(0, 200));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return has_control_char({&c, 1}); }, '?');
  return std::unexpected(Error(Errc::kBadAddress, operation, shown + ": " + std::string(why)));
}

std::unexpected<Error> bad_exception(std::string_view text, std::string_view why) {
  return bad_proxy(text, why, "parse proxy exception");
}

std::optional<Proxy::Kind> kind_named(std::string_view scheme) {
  if (equals_ignoring_case(scheme, "http")) return Proxy::Kind::kHttp;
  if (equals_ignoring_case(scheme, "socks5")) return Proxy::Kind::kSocks5;
  if (equals_ignoring_case(scheme, "socks5h")) return Proxy::Kind::kSocks5h;
  return std::nullopt;
}

// "socks5://" as it is; "" for what may be a part of credentials.
std::string scheme_shown(std::string_view begin) {
  const auto fits = [](char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9'); };
  const std::string_view scheme = begin.substr(0, begin.find(':'));
  return scheme.size() + 3 == begin.size() && std::ranges::all_of(scheme, fits) ? std::string(begin) : "";
}

bool has_port(std::string_view authority) {
  return authority.find(':', authority.starts_with('[') ? authority.find(']') : 0) != std::string_view::npos;
}

// "user", "user:password"; percent-encoded.
BasicCredentials parse_credentials(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  BasicCredentials credentials;
  append_unescaped(credentials.user, text.substr(0, colon));
  append_unescaped(credentials.password, text.substr(std::min(colon + 1, text.size())));
  return credentials;
}

const char* why_bad(Proxy::Kind kind, const BasicCredentials& who) {
  if (who.user.empty()) return "a password without a user";
  if (kind == Proxy::Kind::kHttp) return who.user.contains(':') ? "a user with a colon" : nullptr;
  const bool long_text = who.user.size() > kSocksTextMax || who.password.size() > kSocksTextMax;
  return long_text ? "user or password longer than 255 bytes" : nullptr;
}

struct Variable {
  std::string name, value;  // empty: none is set
};

Variable variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return {name, value};
  }
  return {};
}

// The entries that a Client takes. One list is set for all programs of a machine, and others ignore what they do not know.
std::string known_exceptions(const Variable& variable) {
  static LogLimiter limiter(10);
  std::string known;
  for (std::string_view list = variable.value; !list.empty();) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view text = trim(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    if (text.empty()) continue;
    if (const auto rules = ProxyRules::parse({.except = std::string(text)})) {
      known.append(known.empty() ? "" : ",").append(text);
    } else {
      limiter.log(LogLevel::kWarning, "tuza: " + variable.name + ": left out: " + rules.error().message());
    }
  }
  return known;
}

}  // namespace

Result<Proxy> Proxy::parse(std::string_view text) {
  constexpr std::string_view kSlashes = "://";
  const std::size_t slashes = text.find(kSlashes);
  const bool named = slashes != std::string_view::npos;
  const std::string_view rest = named ? text.substr(slashes + kSlashes.size()) : text;
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t at = rest.rfind('@');  // in front of it nothing is shown
  const std::string_view place = at == std::string_view::npos ? rest : rest.substr(at + 1);
  const std::string shown = scheme_shown(text.substr(0, text.size() - rest.size())) + std::string(place);
  const std::optional<Kind> kind = named ? kind_named(text.substr(0, slashes)) : Kind::kHttp;
  if (!kind) return bad_proxy(shown, "none of http://, socks5:// and socks5h://");
  if (at != std::string_view::npos && at >= authority.size())
    return bad_proxy(shown, "credentials with a character that must be percent-encoded");
  const std::string_view host = place.substr(0, place.find_first_of("/?#"));
  std::string text_of_url = "http://" + std::string(host);
  if (*kind != Kind::kHttp && !has_port(host)) text_of_url += ":1080";
  text_of_url += place.substr(host.size());
  const Result<Url> url = Url::parse(text_of_url);
  if (!url) return bad_proxy(shown, "malformed host or port");
  if (url->target != "/") return bad_proxy(shown, "a path");
  Proxy proxy{.kind = *kind, .address = url->address(), .credentials = std::nullopt};
  if (at == std::string_view::npos) return proxy;
  proxy.credentials = parse_credentials(authority.substr(0, at));
  if (const char* why = why_bad(*kind, *proxy.credentials)) return bad_proxy(shown, why);
  proxy.authorization = "Basic " + encode_base64(proxy.credentials->user + ":" + proxy.credentials->password);
  return proxy;
}

Result<ProxyRules> ProxyRules::parse(const ProxyOptions& options) {
  ProxyRules rules;
  for (auto [text, into] :
       {std::pair(&options.http, &rules.http_), std::pair(&options.https, &rules.https_)}) {
    if (text->empty()) continue;
    Result<Proxy> proxy = Proxy::parse(*text);
    if (!proxy) return std::unexpected(proxy.error());
    *into = *std::move(proxy);
  }
  const std::string_view loopback = options.loopback ? "" : "localhost, 127.0.0.0/8, ::1";
  for (std::string_view list : {std::string_view(options.except), loopback}) {
    while (!list.empty()) {
      const std::string_view text = take_item(list, ',');
      if (text.empty()) continue;
      Result<Exception> exception = parse_exception(text);
      if (!exception) return std::unexpected(exception.error());
      rules.exceptions_.push_back(*std::move(exception));
    }
  }
  return rules;
}

Result<ProxyRules::Exception> ProxyRules::parse_exception(std::string_view text) {
  Exception exception{};
  if (text == "*") return exception;
  if (Result<net::Network> network = net::Network::parse_masked(text)) {
    exception.network = *network;
    return exception;
  }
  if (text.contains('/')) return bad_exception(text, "malformed network");
  std::string_view host = text;
  if (has_port(text)) {
    const std::size_t colon = text.rfind(':');
    host = text.substr(0, colon);
    exception.port = text.substr(colon + 1);
    const bool digits = std::ranges::all_of(exception.port, [](char c) { return c >= '0' && c <= '9'; });
    if (exception.port.empty() || !digits) return bad_exception(text, "malformed port");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (Result<net::Network> network = net::Network::parse(host)) {
    exception.network = *network;
    return exception;
  }
  if (host.starts_with("*.")) host.remove_prefix(1);
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty() || host == "." || has_control_char(host) || host.find_first_of("*[]@\" ") != host.npos)
    return bad_exception(text, "no host");
  exception.itself = !host.starts_with('.');
  exception.suffix = (exception.itself ? "." : "") + std::string(host);
  std::ranges::transform(exception.suffix, exception.suffix.begin(), lower);
  return exception;
}

bool ProxyRules::is_exception(const Url& url) const {
  std::string_view host = url.host();
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string address = url.address(), port = address.substr(address.rfind(':') + 1);
  const Result<net::IpAddress> ip = net::IpAddress::parse(host.substr(0, host.find('%')));
  return std::ranges::any_of(exceptions_, [&](const Exception& exception) {
    if (!exception.port.empty() && exception.port != port) return false;
    if (exception.network) return ip && exception.network->contains(*ip);
    if (exception.itself && host == std::string_view(exception.suffix).substr(1)) return true;
    return host.ends_with(exception.suffix);
  });
}

const Proxy* ProxyRules::choose(const Url& url) const {
  const std::optional<Proxy>& proxy = url.https ? https_ : http_;
  return proxy && !is_exception(url) ? &*proxy : nullptr;
}

Result<ProxyOptions> proxies_from_environment() {
  const bool cgi = std::getenv("REQUEST_METHOD") != nullptr;
  const Variable http = cgi ? variable({"http_proxy"}) : variable({"http_proxy", "HTTP_PROXY"});
  const Variable https = variable({"https_proxy", "HTTPS_PROXY"});
  for (const Variable& proxy : {http, https}) {
    if (proxy.value.empty()) continue;
    if (const Result<Proxy> parsed = Proxy::parse(proxy.value); !parsed)
      return std::unexpected(errorf("{}: {}", proxy.name, parsed.error()));
  }
  return ProxyOptions{.http = http.value,
                      .https = https.value,
                      .except = known_exceptions(variable({"no_proxy", "NO_PROXY"}))};
}

}  // namespace tuza::http
