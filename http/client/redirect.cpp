#include <tuza/http/client/redirect.h>

#include <tuza/http/header_range.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <utility>

namespace tuza::http {
namespace {

// RFC 9110 15.4.2 to 15.4.4: after 303 what follows is asked for with GET; after 301 and 302, a POST becomes one, too, as
// all browsers do.
bool becomes_get(int status, Method method) {
  if (status == 303) return method != Method::kGet && method != Method::kHead;
  return (status == 301 || status == 302) && method == Method::kPost;
}

}  // namespace

std::string without_fields(std::string_view lines, std::initializer_list<std::string_view> names) {
  std::string kept;
  for (const auto& [name, value] : HeaderLines(lines)) {
    const bool gone =
        std::ranges::any_of(names, [&](std::string_view one) { return equals_ignoring_case(one, name); });
    if (!gone) kept.append(name).append(": ").append(value).append("\r\n");
  }
  return kept;
}

std::string without_upgrade(std::string_view url) {
  const std::string_view scheme = url.substr(0, url.find(':'));
  std::string_view is = scheme;
  if (equals_ignoring_case(scheme, "ws")) is = "http";
  if (equals_ignoring_case(scheme, "wss")) is = "https";
  return std::string(is).append(url.substr(scheme.size()));
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool can_redirect(int status, const Hop& hop) {
  return becomes_get(status, hop.method) || !hop.with_body || hop.can_repeat_body();
}

void redirect(int status, Url next, Hop& hop) {
  if (becomes_get(status, hop.method)) {
    hop.method = Method::kGet;
    hop.with_body = hop.asks_first = false;
    hop.own_fields =
        without_fields(hop.fields(), {"Content-Type", "Content-Encoding", "Content-Language",
                                      "Content-Location", "Last-Modified", "Digest", "Content-Digest"});
  }
  if (next.https != hop.url().https || next.authority != hop.url().authority)
    hop.own_fields = without_fields(hop.fields(), {"Authorization", "Cookie", "Proxy-Authorization", "Host"});
  hop.own_url = std::move(next);
}

}  // namespace tuza::http
