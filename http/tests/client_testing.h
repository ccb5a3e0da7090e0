// A server for tests of the client that says exactly what it is told to.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/router.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/raw_socket.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {

// Calls `script` with each connection, which ends with it. For the length of a scope on a goroutine.
class ScriptedServer {
 public:
  using Script = std::function<void(net::Conn& conn, int connection)>;

  explicit ScriptedServer(Script script, const std::shared_ptr<net::TlsServer>& tls = nullptr)
      : script_(std::move(script)), listener_(net::listen("tcp", "127.0.0.1:0").value()) {
    if (tls != nullptr) listener_.use_tls(tls);
    group_.go([this] {
      while (auto conn = listener_.accept()) {
        const int number = connections_++;
        group_.go([this, number, conn = std::move(*conn)]() mutable { script_(conn, number); });
      }
    });
  }
  // Answers each request with `bytes`, and closes behind the answer.
  explicit ScriptedServer(std::string bytes)
      : ScriptedServer([bytes = std::move(bytes)](net::Conn& conn, int) {
          if (!read_request(conn).empty()) (void)conn.write_all(bytes);
        }) {}
  ~ScriptedServer() {
    listener_.close();
    group_.wait();
  }

  [[nodiscard]] std::string url(std::string_view target = "/") const {
    return "http://" + listener_.address() + std::string(target);
  }
  [[nodiscard]] int connections() const { return connections_; }

  // A head, up to its empty line; what has arrived behind it stays in it. Empty: the client has gone.
  static std::string read_request(net::Conn& conn) {
    std::string got;
    char piece[4096];
    conn.set_read_deadline(net::time_after_now(20s));
    while (!got.contains("\r\n\r\n")) {
      const auto n = conn.read(std::span(piece));
      if (!n || *n == 0) return {};
      got.append(piece, *n);
    }
    return got;
  }

 private:
  const Script script_;
  net::Listener listener_;
  WaitGroup group_;
  std::atomic<int> connections_{0};
};

// Until all that has been written is in the other side's socket: on a busy machine it may still be on its way. The portable form
// cannot tell, and waits for a moment.
inline void wait_until_delivered(net::Conn& conn) {
#ifdef TUZA_PORTABLE
  (void)conn;
  sleep_for(50ms);
#else
  tuza::testing::yield_until([&] { return conn.all_delivered(); });
#endif
}

inline void wait_for_end(net::Conn& conn) {
  std::array<char, 1> byte;
  (void)conn.read(std::span(byte));
}

// What servers were asked for, written by their goroutines.
class AskedFor {
 public:
  void add(std::string text) {
    const LockGuard lock(mutex_);
    all_.push_back(std::move(text));
  }
  // Since the last call.
  [[nodiscard]] std::vector<std::string> take() {
    const LockGuard lock(mutex_);
    return std::exchange(all_, {});
  }

 private:
  Mutex mutex_;
  std::vector<std::string> all_ TUZA_GUARDED_BY(mutex_);
};

inline const Context kNoContext;

inline std::string url_of(const TestServer& server, std::string_view target = "/") {
  return "http://" + server.address() + std::string(target);
}

// Where nobody listens.
inline std::string closed_url(std::string_view target = "") {
  return "http://" + net::testing::refusing_address() + std::string(target);
}

// `/echo` answers the body, and in fields what else came with it.
inline Router echo_router() {
  Router router;
  router.handle("/echo", [](Request& req, ResponseWriter& res) {
    const Result<std::string_view> body = req.body();
    if (!body) return;
    res.set_header("X-Method", req.method_name());
    res.set_header("X-Type", req.header("Content-Type").value_or("-"));
    res.set_header("X-Length", req.header("Content-Length").value_or("-"));
    res.set_header("X-Trailer", req.trailer("X-Sum").value_or("-"));
    res.send("text/plain", *body);
  });
  return router;
}

}  // namespace tuza::http::testing
