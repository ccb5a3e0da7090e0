#include <tuza/http/cookie_jar.h>

#include <tuza/http/client.h>
#include <tuza/http/client/public_suffix.h>
#include <tuza/http/client/set_cookie.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/time/clock.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

using Entry = CookieJar::Entry;

bool is_address(std::string_view host) {
  if (host.find(':') != std::string_view::npos) return true;
  return std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// RFC 6265bis 5.1.3
bool host_is_in(std::string_view host, std::string_view domain) {
  if (host == domain) return true;
  return host.size() > domain.size() && host.ends_with(domain) &&
         host[host.size() - domain.size() - 1] == '.' && !is_address(host);
}

// RFC 6265bis 5.1.4
bool path_is_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

std::chrono::sys_seconds wall_clock() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string_view path_of(const Url& url) {
  return std::string_view(url.target).substr(0, url.target.find('?'));
}

std::string folder_of(const Url& url) {
  const std::string_view path = path_of(url);
  const std::size_t end = path.rfind('/');
  return end == 0 || end == std::string_view::npos ? "/" : std::string(path.substr(0, end));
}

// What a name promises of its cookie: RFC 6265bis 4.1.3.
bool keeps_promise(const SetCookie& cookie, bool host_only) {
  const auto begins = [&](std::string_view prefix) {
    return equals_ignoring_case(cookie.name.substr(0, prefix.size()), prefix);
  };
  if (begins("__Host-")) return cookie.secure && host_only && cookie.path == "/";
  return !begins("__Secure-") || cookie.secure;
}

bool is_same(const Entry& a, const Entry& b) {
  return a.name == b.name && a.domain == b.domain && a.path == b.path && a.host_only == b.host_only;
}

// nullopt: the host may not set that.
std::optional<Entry> entry_of(const Url& url, const SetCookie& cookie) {
  Entry entry{.name = std::string(cookie.name),
              .value = std::string(cookie.value),
              .domain = std::string(url.host()),
              .path = cookie.has_path ? std::string(cookie.path) : folder_of(url),
              .secure = cookie.secure};
  if (!cookie.domain.empty()) {
    const std::string domain = lower_case(cookie.domain);
    if (!host_is_in(entry.domain, domain)) return {};
    const bool nobodys = is_public_suffix(domain) || is_address(domain);
    if (nobodys && domain != entry.domain && knows_public_suffixes()) return {};
    entry.host_only = nobodys;
    if (!nobodys) entry.domain = domain;
  }
  if (cookie.secure && !url.https) return {};
  if (!keeps_promise(cookie, entry.host_only)) return {};
  return entry;
}

bool is_sound(const Entry& entry) {
  const auto fits = [](std::string_view text, std::string_view refused) {
    return std::ranges::none_of(text, [refused](char c) {
      return static_cast<unsigned char>(c) < ' ' || c == 0x7f || refused.find(c) != std::string_view::npos;
    });
  };
  return !entry.name.empty() && fits(entry.name, "=;") && fits(entry.value, ";") &&
         entry.path.starts_with('/') &&
         entry.name.size() + entry.value.size() <= CookieJar::kCookieBytesMax &&
         std::max(entry.path.size(), entry.domain.size()) <= CookieJar::kAttributeBytesMax;
}

}  // namespace

void CookieJar::store(const Url& url, std::string_view set_cookie) {
  const std::chrono::sys_seconds wall = wall_clock();
  const std::optional<SetCookie> cookie = parse_set_cookie(set_cookie, wall);
  std::optional<Entry> entry = cookie ? entry_of(url, *cookie) : std::nullopt;
  if (!entry) return;
  std::optional<TimePoint> ends;
  if (cookie->lifetime) {
    ends = now() + *cookie->lifetime;
    entry->expires = wall + *cookie->lifetime;
  }
  const LockGuard lock(mutex_);
  if (!url.https) {
    // Without TLS, anybody on the way may have sent it: it must not stand in for one that came with TLS.
    for (const auto& [domain, stored] : domains_) {
      if (!host_is_in(domain, entry->domain) && !host_is_in(entry->domain, domain)) continue;
      const bool hides = std::ranges::any_of(stored, [&](const Stored& other) {
        return other.entry.secure && other.entry.name == entry->name &&
               path_is_in(entry->path, other.entry.path);
      });
      if (hides) return;
    }
  }
  put(*std::move(entry), ends);
}

void CookieJar::store(Entry entry) {
  if (!is_sound(entry)) return;
  entry.domain = lower_case(entry.domain);
  std::optional<TimePoint> ends;
  if (entry.expires) ends = now() + (*entry.expires - wall_clock());
  const LockGuard lock(mutex_);
  put(std::move(entry), ends);
}

void CookieJar::put(Entry&& entry, std::optional<TimePoint> ends) {
  const TimePoint time = now();
  std::vector<Stored>& stored = domains_[entry.domain];
  const auto same =
      std::ranges::find_if(stored, [&](const Stored& other) { return is_same(other.entry, entry); });
  if (same != stored.end()) {
    same->entry = std::move(entry);
    same->ends = ends;
  } else {
    ++counter_;
    stored.push_back({.entry = std::move(entry), .ends = ends, .created = counter_, .used = counter_});
    ++count_;
  }
  count_ -= std::erase_if(stored, [&](const Stored& one) { return has_ended(one, time); });
  shrink(stored);
}

void CookieJar::shrink(std::vector<Stored>& crowded) {
  const auto older = [](const Stored& a, const Stored& b) { return a.used < b.used; };
  while (crowded.size() > options_.per_domain_max) {
    crowded.erase(std::ranges::min_element(crowded, older));
    --count_;
  }
  std::erase_if(domains_, [](const auto& domain) { return domain.second.empty(); });
  while (count_ > options_.cookies_max) {
    const auto oldest = std::ranges::min_element(domains_, {}, [&](const auto& domain) {
      return std::ranges::min_element(domain.second, older)->used;
    });
    oldest->second.erase(std::ranges::min_element(oldest->second, older));
    if (oldest->second.empty()) domains_.erase(oldest);
    --count_;
  }
}

std::string CookieJar::cookies_for(const Url& url) {
  const std::string_view host = url.host(), path = path_of(url);
  const LockGuard lock(mutex_);
  const auto time = now();
  std::vector<Stored*> chosen;
  for (std::string_view domain = host;;) {
    if (const auto at = domains_.find(domain); at != domains_.end()) {
      for (Stored& one : at->second) {
        const Entry& entry = one.entry;
        const bool goes = (!entry.host_only || domain.size() == host.size()) &&
                          (!entry.secure || url.https) && path_is_in(path, entry.path) &&
                          !has_ended(one, time);
        if (goes) chosen.push_back(&one);
      }
    }
    const std::size_t dot = domain.find('.');
    if (dot == std::string_view::npos || is_address(host)) break;
    domain.remove_prefix(dot + 1);
  }
  std::ranges::sort(chosen, [](const Stored* a, const Stored* b) {
    if (a->entry.path.size() != b->entry.path.size()) return a->entry.path.size() > b->entry.path.size();
    return a->created < b->created;
  });
  std::string field;
  for (Stored* one : chosen) {
    const std::string_view between = field.empty() ? "" : "; ";
    const std::size_t size = between.size() + one->entry.name.size() + 1 + one->entry.value.size();
    if (field.size() + size > kFieldBytesMax) break;
    one->used = ++counter_;
    field.append(between).append(one->entry.name).append("=").append(one->entry.value);
  }
  return field;
}

std::vector<CookieJar::Entry> CookieJar::entries() const {
  const LockGuard lock(mutex_);
  const TimePoint time = now();
  std::vector<const Stored*> left;
  for (const auto& [domain, stored] : domains_) {
    for (const Stored& one : stored) {
      if (!has_ended(one, time)) left.push_back(&one);
    }
  }
  std::ranges::sort(left, {}, [](const Stored* one) { return one->created; });
  std::vector<Entry> all;
  all.reserve(left.size());
  for (const Stored* one : left) all.push_back(one->entry);
  return all;
}

void CookieJar::clear() {
  const LockGuard lock(mutex_);
  domains_.clear();
  count_ = 0;
}

ClientMiddleware client_cookies(std::shared_ptr<CookieJar> jar) {
  if (jar == nullptr) throw std::invalid_argument("client_cookies(): no jar");
  return [jar = std::move(jar)](const Context& ctx, ClientRequest& request,
                                const ClientNext& next) -> Result<ClientResponse> {
    const Url url = *request.url();
    std::string cookies = jar->cookies_for(url);
    if (const auto own = request.header("Cookie"); own && !own->empty())
      cookies = std::string(*own) + (cookies.empty() ? "" : "; ") + cookies;
    if (!cookies.empty()) request.set_header("Cookie", cookies);
    Result<ClientResponse> response = next(ctx, request);
    if (!response) return response;
    for (const auto& [name, value] : response->headers()) {
      if (equals_ignoring_case(name, "Set-Cookie")) jar->store(url, value);
    }
    return response;
  };
}

}  // namespace tuza::http
