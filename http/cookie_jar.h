// Public header, part of <tuza/http.h>.
//
// The cookies that servers have set for a client, by the rules of RFC 6265bis for clients that are no browsers.
//
//     auto jar = std::make_shared<tuza::http::CookieJar>();
//     tuza::http::Client client({.middleware = {tuza::http::client_cookies(jar)}});     // stores and sends them
//
// A cookie goes to the host that has set it, or to all hosts of its Domain; never to an http URL if it is Secure. A host cannot set
// cookies for other domains than its own and those above it, nor for a public suffix such as "co.uk" (libpsl has the list). What a
// name promises ("__Host-", "__Secure-") has to hold. Without TLS, a cookie that was set with TLS cannot be replaced. Where Tuza was
// built without libpsl, a Domain is ignored: all cookies are of their host only.
//
// What a domain may set is limited as in browsers: name and value of a cookie to 4,096 bytes together, an attribute to 1,024, and
// the number of cookies. Of a Cookie field, at most 8,190 bytes are the jar's: servers refuse requests whose fields are longer.
//
// SameSite and HttpOnly concern pages and scripts, and mean nothing here. What is malformed is ignored, as browsers do.
//
// Lives are measured by tuza::now(). Thread-safe. Nothing parks for I/O.
#pragma once

#include <tuza/http/client_middleware.h>
#include <tuza/http/url.h>
#include <tuza/sched/detail/thread_annotations.h>
#include <tuza/sched/sync/mutex.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct CookieJarOptions {
  // Beyond them the cookies that were not sent for the longest time go; those of the domain that has too many first.
  std::size_t cookies_max = 3'000;
  std::size_t per_domain_max = 150;
};

class CookieJar {
 public:
  static constexpr std::size_t kCookieBytesMax = 4'096;  // name and value; a longer cookie is ignored
  static constexpr std::size_t kAttributeBytesMax =
      1'024;                                            // a longer one is ignored, as if the cookie had none
  static constexpr std::size_t kFieldBytesMax = 8'190;  // cookies_for(); curl has the same limit

  struct Entry {
    std::string name, value, domain, path;
    bool host_only = true;  // not for hosts below `domain`
    bool secure = false;
    std::optional<std::chrono::sys_seconds> expires{};  // nullopt: with the jar
  };

  explicit CookieJar(CookieJarOptions options = {}) : options_(options) {}

  // What one Set-Cookie field of a response of `url` says.
  void store(const Url& url, std::string_view set_cookie);
  // As it is, from an earlier jar. Replaces one with the same name, domain and path. One that is malformed or too long is ignored.
  void store(Entry entry);
  // For a request to `url`: "a=1; b=2", the longest path first, then the oldest; "" if there are none. The first that goes beyond
  // kFieldBytesMax stays out, and all behind it.
  [[nodiscard]] std::string cookies_for(const Url& url);
  // All that have not ended, the oldest first: to save them, for example.
  [[nodiscard]] std::vector<Entry> entries() const;
  void clear();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Stored {
    Entry entry;
    std::optional<TimePoint> ends;
    std::uint64_t created = 0, used = 0;  // in the order of the counter
  };
  // By domain: "www.example.org" looks there, at "example.org", and at "org".
  using Domains = std::map<std::string, std::vector<Stored>, std::less<>>;

  [[nodiscard]] static bool has_ended(const Stored& one, TimePoint time) {
    return one.ends && *one.ends <= time;
  }
  void put(Entry&& entry, std::optional<TimePoint> ends) TUZA_REQUIRES(mutex_);
  void shrink(std::vector<Stored>& crowded) TUZA_REQUIRES(mutex_);

  const CookieJarOptions options_;
  mutable Mutex mutex_;
  Domains domains_ TUZA_GUARDED_BY(mutex_);
  std::size_t count_ TUZA_GUARDED_BY(mutex_) = 0;
  std::uint64_t counter_ TUZA_GUARDED_BY(mutex_) = 0;
};

// Sends the cookies of the jar with each request, redirects included, and stores what the answers set. What the request has in
// Cookie itself is sent in front. Throws std::invalid_argument if there is no jar.
[[nodiscard]] ClientMiddleware client_cookies(std::shared_ptr<CookieJar> jar);

}  // namespace tuza::http
