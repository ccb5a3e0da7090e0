// Public header.
//
// The servers that the code under test asks, in memory. <tuza/http.h> does not include it.
//
//     tuza::run([] {
//       tuza::http::testing::FakeUpstreams upstreams;
//       auto& shop = upstreams.add("https://shop.example", [](Request&, ResponseWriter& res) { res.json(R"({"items":[]})"); });
//       tuza::http::Client client(upstreams.client_options({.timeout = 5s}));
//       code_under_test(client);
//       assert(shop.requests().at(0).target == "/items?page=1");
//     });
//
// An upstream is an http::testing::Server with a handler of yours: a router, perhaps of the real service. Requests pass through the
// whole client and the whole server, and no port, name or system call is needed. What is missing is TLS: an https URL is answered
// over a plain connection (ClientOptions::dial_tls), so certificates are not tested. With a FakeClock, which has to be made before,
// a slow answer takes microseconds.
//
// A host that has not been added is Errc::kNoSuchHost for the client, and a failure of the test, however the code under test deals
// with it: close() names it, and without close() the destructor ends the process; so it does for goroutines left behind.
//
// Thread-safe, except for construction, destruction and close(). Goroutines only.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/http/testing.h>
#include <tuza/http/url.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/leak_check.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tuza::http::testing {

// A request that has come in.
struct SeenRequest {
  Method method{};
  std::string target;    // "/items?page=1"
  HeaderFields headers;  // in the order received
  // What the handler has read, or all of it if its length was known and is at most 64 KiB.
  std::string body;

  // The first field of that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

// One server. Orders apply to what comes after them; those for requests are carried out in the order given, one for each request.
class FakeUpstream {
 public:
  ~FakeUpstream();
  FakeUpstream(const FakeUpstream&) = delete;
  FakeUpstream& operator=(const FakeUpstream&) = delete;

  // In the order of their coming; those that were dropped or broken off are among them.
  [[nodiscard]] std::vector<SeenRequest> requests() const;
  // Connections that were asked for, the refused ones included.
  [[nodiscard]] std::size_t dials() const;

  // The next dials fail.
  void refuse_dials(int times = 1,
                    std::error_code code = std::make_error_code(std::errc::connection_refused));
  // The next requests get no answer: their connections end. The handler is not called.
  void drop_requests(int times = 1);
  // The next answers end after `body_bytes` bytes of the body, and at least one byte too early; without a body, within the
  // head. The handler is called, over no connection (http/testing.h).
  void break_off(std::size_t body_bytes, int times = 1);
  // From now on answers begin so much later; 0: at once. Ends with the request's context.
  void delay(std::chrono::nanoseconds delay);

 private:
  friend class FakeUpstreams;
  class Impl;
  explicit FakeUpstream(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

struct FakeUpstreamsSetup {
  ServerOptions server{};               // of each upstream
  std::size_t buffer_bytes = 64 << 10;  // what an end of a connection receives before its peer's writes wait
  bool leak_check = true;
};

class FakeUpstreams {
 public:
  explicit FakeUpstreams(FakeUpstreamsSetup setup = {});
  FakeUpstreams(const FakeUpstreams&) = delete;
  FakeUpstreams& operator=(const FakeUpstreams&) = delete;
  // Parks.
  ~FakeUpstreams();

  // `origin`: "http://api.example", "https://api.example:8443". Throws std::invalid_argument if it is none, if it has been
  // added, and for an empty handler. The reference is valid as long as this object.
  FakeUpstream& add(std::string_view origin, Handler handler);
  // For clients that come here: `options`, whose dial and dial_tls are replaced. The clients may not outlive this object.
  [[nodiscard]] ClientOptions client_options(ClientOptions options = {});

  // Shuts the upstreams down, and returns what is wrong, a line each: hosts that were asked for and not added, goroutines that
  // are left. "" if nothing is. The destructor then says nothing. May be repeated. Parks.
  [[nodiscard]] std::string close();

 private:
  [[nodiscard]] Result<net::Conn> dial(const Context& ctx, const Url& url);
  [[nodiscard]] std::string unknown_hosts() const;
  void end();

  const FakeUpstreamsSetup setup_;
  std::optional<tuza::testing::LeakCheck> leaks_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<FakeUpstream>> upstreams_ TUZA_GUARDED_BY(mutex_);  // by origin
  std::vector<std::string> unknown_ TUZA_GUARDED_BY(mutex_);                                // origins
  const int exceptions_;
  bool ended_ = false;
  bool told_ = false;
};

}  // namespace tuza::http::testing
