// Public header, part of <tuza/net.h>.
//
// The accept loop: a goroutine per connection, a connection limit, and graceful shutdown.
//
//     auto listener = tuza::net::listen("tcp", "127.0.0.1:7000").value();
//     tuza::net::serve(listener, [](tuza::net::Conn& conn) {
//       std::array<std::byte, 4096> buf;
//       while (auto n = conn.read(buf)) {
//         if (*n == 0 || !conn.write_all(std::span(buf).first(*n))) break;
//       }
//     });
//
// Out of descriptors (EMFILE and similar) the loop neither spins nor gives up. It logs at most once a second.
// It closes the connections that have been idle for longest. If none is idle, it accepts and closes one connection of the backlog,
// by means of a descriptor kept in reserve, so that this client learns at once that it is not served. It then waits 5 ms, doubling
// up to 1 s, and continues as soon as a connection ends. The other connections wait in the backlog meanwhile.
//
// An exception that escapes the handler ends the process, as from any goroutine. A Result that it returns: conn_handler.h.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/conn_handler.h>
#include <tuza/netpoll/detail/address_counts.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/network.h>
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/sched/detail/lost_result.h>
#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tuza::net {

class Server;
class SpareDescriptor;

// One connection of a Server, while its handler runs. Lives on the handler's goroutine.
class Session {
 public:
  [[nodiscard]] Conn& conn() { return conn_; }

  // Announces that the handler is about to wait for the client's next request. False: the server is shutting
  // down, and the handler should return instead; the session is then not idle, and may have lost its read
  // deadline. While the session is idle, a shutdown interrupts the read (Errc::kTimeout) by means of the read
  // deadline: set your own deadline before this call, not after it, or the interruption is lost.
  [[nodiscard]] bool begin_idle();
  // Announces that data has arrived: from here on, a shutdown lets the handler finish. Cancels an
  // interruption that came too late for the read, and the read deadline with it.
  void end_idle() {
    if (!idle_.exchange(false, std::memory_order_acq_rel)) [[unlikely]]
      take_interruption_back();
  }
  // The server is shutting down: the handler should finish the work it has begun and return.
  [[nodiscard]] bool draining() const;
  // While idle, this session has been interrupted for a new connection: the handler should return, unless a request has
  // arrived.
  [[nodiscard]] bool makes_room() const { return makes_room_.load(std::memory_order_relaxed); }
  // Ends when the server begins to shut down, with the cause of the shutdown. Made when it is first asked for, and one for all sessions.
  [[nodiscard]] Context shutdown_notice();

 private:
  friend class Server;
  Session(Server& server, Conn conn) : server_(server), conn_(std::move(conn)) {}
  void interrupt_if_idle();
  void take_interruption_back();

  Server& server_;
  Conn conn_;
  std::atomic<bool> makes_room_{false};
  std::atomic<std::int64_t> idle_since_ns_{0};
  std::atomic<bool> idle_{false};  // whoever clears it wins: end_idle() or interrupt_if_idle()
  Session* next_ = nullptr;        // guarded by Server::mutex_
  Session* previous_ = nullptr;    // guarded by Server::mutex_
};

struct ServeOptions {
  // Maximum number of open connections; 0: connections_allowed(). For a further one, the session that has been idle for
  // longest is interrupted as by a shutdown; if none is idle, it waits.
  std::size_t max_connections = 0;
  // Maximum number from one IPv4 address, or one IPv6 network of 64 bits; further ones are closed at once. 0: no limit.
  // Clients without an address do not count: those of Unix sockets, and those that a proxy does not know.
  std::size_t connections_per_address_max = 0;
  // With kRequired, only `proxies` may connect; others are closed at once. The client that a header names is the peer of
  // the connection from then on, also for the limit above.
  ProxyProtocol proxy_protocol = ProxyProtocol::kOff;
  std::vector<Network> proxies{};
  std::chrono::milliseconds proxy_header_timeout{
      5000};  // from accepting the connection to the header's last byte
  // Of the handlers' goroutines, rounded up as GoOptions::stack_bytes. More than the default of go(), because what handlers
  // call may recurse as deep as the text of a client is long (std::regex). An untouched page costs nothing.
  std::size_t stack_bytes = 1 << 20;
  const char* stack_setting = "net::ServeOptions::stack_bytes";  // as GoOptions::stack_setting
};

// Connections that were closed before their handler was called, so far, and what made room for others.
struct ServeStats {
  std::uint64_t over_address_max = 0;
  std::uint64_t not_from_proxy = 0;     // of `proxies`
  std::uint64_t bad_proxy_headers = 0;  // malformed, cut off, or too late
  std::uint64_t no_memory = 0;          // for the stack of their goroutine
  std::uint64_t made_room = 0;          // idle ones that were closed for new ones
};

// The descriptor limit of the process, less a quarter, from 32 to 1,024, for what the handlers open: files, databases, other
// servers (but at least half of the limit). Several servers should divide this number among them. At least 1.
[[nodiscard]] std::size_t connections_allowed();

class Server {
 public:
  // Called on the connection's own goroutine; the connection is closed when the handler returns.
  using Handler = MoveOnlyFunction<void(Session&) const>;

  // Throws std::invalid_argument without a handler, for proxy_protocol without `proxies`, or for stack_bytes above 64 MiB.
  Server(Listener&& listener, Handler handler, const ServeOptions& options = {});
  // The caller keeps the listener; closing the listener also ends serve().
  Server(Listener& listener, Handler handler, const ServeOptions& options = {});
  template <class L, class F>
    requires(tuza::detail::kReturnsResult<F, Session&>)
  Server(L&& listener, F&&, const ServeOptions& = {}) : Server(std::forward<L>(listener), Handler()) {
    tuza::detail::refuse_lost_result<F>();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Every call must have returned, and every connection must have ended; otherwise the process is terminated.
  ~Server();

  [[nodiscard]] const Endpoint& endpoint() const { return listener_.endpoint(); }
  [[nodiscard]] const std::string& address() const { return listener_.address(); }
  // Number of open connections. Zero is final after serve() has returned, and the server may then be
  // destroyed. Connections left open by the end of tuza::run no longer count.
  [[nodiscard]] std::size_t connections() const {
    return run_.ended() ? 0 : connections_.load(std::memory_order_acquire);
  }

  [[nodiscard]] ServeStats stats() const;

  // Accepts and serves until shutdown() has been called and every connection has ended, or shutdown() has
  // given up; in that case handler goroutines are still running, as many as connections() says. After
  // shutdown() it returns at once. Parks.
  [[nodiscard]] Result<void> serve();

  // Stops accepting, interrupts idle sessions, and waits for the others until `deadline`; then closes their
  // connections, and gives their handlers kNoticeTime to notice. True: all had ended by themselves. `why`, "SIGTERM", is
  // for the causes of contexts: Session::shutdown_notice(), and the PeerWatch of a connection that this closes. They are
  // Errc::kCancelled, "shutdown SIGTERM: context cancelled". May be called only once. Parks.
  bool shutdown(TimePoint deadline, std::string why = {});
  static constexpr std::chrono::milliseconds kNoticeTime{1000};

 private:
  // How long interrupted sessions may take to end before others are interrupted, or a client is turned away.
  static constexpr std::chrono::milliseconds kPatience{50};
  friend class Session;
  void begin_run();
  [[nodiscard]] Result<void> accept_loop();
  void outlast_shortage(const Error& error, SpareDescriptor& spare, std::chrono::milliseconds& pause);
  void admit(Conn conn);
  void start(Conn conn, AddressCounts::Held held);
  void run(Conn conn, AddressCounts::Held held);
  [[nodiscard]] std::optional<AddressCounts::Held> hold_address(const Conn& conn);
  bool meet_client(Session& session, AddressCounts::Held& held);
  bool wait_for_slot();
  std::size_t make_room();
  // Of the contexts that the shutdown ends.
  [[nodiscard]] Error cause() const { return Error(Errc::kCancelled, "shutdown", why_); }
  void add(Session& session);
  void remove(Session& session);
  bool wait_for_sessions(TimePoint deadline);
  void end_connection();
  void say_no_memory();
  template <class Action>
  void for_each_session(Action action);

  std::optional<Listener> own_listener_;
  Listener& listener_;
  Handler handler_;
  const ServeOptions options_;
  const std::int64_t slots_max_;
  std::optional<Semaphore> slots_;
  AddressCounts addresses_;
  std::string why_;  // of the shutdown; written before draining_ is set
  std::atomic<bool> draining_{false};
  std::atomic<bool> given_up_{false};  // set by shutdown() when handlers do not end
  std::atomic<std::size_t> connections_{0};
  std::atomic<std::uint64_t> over_address_max_{0}, not_from_proxy_{0}, bad_proxy_headers_{0}, no_memory_{0},
      made_room_{0};
  rt::RunMark run_;  // the run that owns the slots and the sessions; changed under mutex_
  Mutex mutex_;
  Session* sessions_ TUZA_GUARDED_BY(mutex_) = nullptr;
  std::optional<CancellableContext> notice_ TUZA_GUARDED_BY(mutex_);
  bool forced_ TUZA_GUARDED_BY(mutex_) = false;  // every session must end
};

inline bool Session::draining() const { return server_.draining_.load(std::memory_order_relaxed); }

// Serves `listener` until it is closed, then waits for the connections to end. Parks.
[[nodiscard]] Result<void> serve(Listener& listener, ConnHandler handler, const ServeOptions& options = {});

}  // namespace tuza::net
