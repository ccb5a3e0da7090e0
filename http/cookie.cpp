#include <tuza/http/cookie.h>

#include <tuza/http/files/http_date.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <stdexcept>

namespace tuza::http {
namespace {

constexpr std::size_t kPairBytesMax = 4'096, kAttributeBytesMax = 1'024;

void require(bool holds, const Cookie& cookie, std::string_view complaint) {
  if (holds) return;
  throw std::invalid_argument("cookie \"" + cookie.name + "\": " + std::string(complaint));
}

bool is_cookie_octet(char c) { return c > ' ' && c < 0x7f && c != '"' && c != ',' && c != ';' && c != '\\'; }

bool has_prefix(std::string_view name, std::string_view prefix) {
  return equals_ignoring_case(name.substr(0, prefix.size()), prefix);  // as browsers compare it
}

void check(const Cookie& cookie) {
  require(!cookie.name.empty() && std::ranges::all_of(cookie.name, [](char c) { return is(c, kTokenChar); }),
          cookie, "the name is no token");
  require(std::ranges::all_of(cookie.value, is_cookie_octet), cookie,
          "the value has a character that cookies cannot have; encode it");
  require(cookie.name.size() + cookie.value.size() <= kPairBytesMax, cookie,
          "name and value have more than 4,096 bytes");
  require(cookie.path.size() <= kAttributeBytesMax && cookie.domain.size() <= kAttributeBytesMax, cookie,
          "an attribute has more than 1,024 bytes");
  require(cookie.path.empty() ||
              (cookie.path.front() == '/' &&
               std::ranges::all_of(cookie.path, [](char c) { return c >= ' ' && c < 0x7f && c != ';'; })),
          cookie, "the path does not begin with \"/\", or has a character that paths of cookies cannot have");
  require(std::ranges::all_of(cookie.domain,
                              [](char c) {
                                return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
                                       c == '-' || c == '.';
                              }),
          cookie, "the domain is no name of a host");
  if (cookie.expires) {
    const auto year =
        std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(*cookie.expires)).year();
    require(year >= std::chrono::year(1601) && year <= std::chrono::year(9999), cookie,
            "the time of its end is before 1601 or after 9999");
  }
  require(cookie.secure || cookie.same_site != SameSite::kNone, cookie, "SameSite=None needs secure");
  require(cookie.secure || !cookie.partitioned, cookie, "partitioned needs secure");
  require(cookie.secure || !has_prefix(cookie.name, "__Secure-"), cookie, "__Secure- needs secure");
  require(
      !has_prefix(cookie.name, "__Host-") || (cookie.secure && cookie.path == "/" && cookie.domain.empty()),
      cookie, "__Host- needs secure, the path \"/\" and no domain");
}

}  // namespace

std::string to_set_cookie(const Cookie& cookie) {
  check(cookie);
  std::string out = cookie.name + "=" + cookie.value;
  if (!cookie.path.empty()) out.append("; Path=").append(cookie.path);
  if (!cookie.domain.empty()) out.append("; Domain=").append(cookie.domain);
  if (cookie.expires) out.append("; Expires=").append(format_http_date(*cookie.expires));
  if (cookie.max_age) {
    out.append("; Max-Age=").append(std::to_string(std::max<std::int64_t>(cookie.max_age->count(), 0)));
  }
  if (cookie.secure) out += "; Secure";
  if (cookie.http_only) out += "; HttpOnly";
  switch (cookie.same_site) {
    case SameSite::kUnset: break;
    case SameSite::kLax: out += "; SameSite=Lax"; break;
    case SameSite::kStrict: out += "; SameSite=Strict"; break;
    case SameSite::kNone: out += "; SameSite=None"; break;
  }
  if (cookie.partitioned) out += "; Partitioned";
  return out;
}

HeaderField detail::next_cookie(std::string_view& list) {
  while (!list.empty()) {
    const std::string_view pair = list.substr(0, list.find(';'));
    list.remove_prefix(std::min(pair.size() + 1, list.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = trim(pair.substr(0, equals));
    if (!name.empty()) return {name, trim(pair.substr(equals + 1))};
  }
  return {};
}

void RequestCookies::iterator::advance() {
  for (;;) {
    pair_ = detail::next_cookie(left_);
    if (pair_.name.data() != nullptr) return;
    while (field_ != end_ && !equals_ignoring_case((*field_).name, "Cookie")) ++field_;
    if (field_ == end_) return;
    left_ = (*field_++).value;
  }
}

}  // namespace tuza::http
