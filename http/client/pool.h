// The connections of a client: those in use and those that wait for the next request, by origin.
//
//                        place                        keep()
//     take() --- idle ---------> Lease --- in use ----------> idle, or the first caller that waits
//            `-- none: dial ---'       `-- end: closed, and its place goes to the first caller that waits
//
// A place is the right to one connection, within the limits of an origin and of all of them. Callers that find none wait,
// first come, first served, and stop waiting with their context: what was given to one that has just stopped goes to the
// next. The last connection that was given back is used first, so that those of a quiet time grow old and are closed.
//
// Where the process has no descriptor for a connection that a place would allow, its owner keeps the place, and waits until a
// connection is given back to it, or closed: Lease::wait_for_room().
//
// Thread-safe. take() and wait_for_room() park; neither dials: a lease without a connection is for its owner to dial.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/run_mark.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/after_func.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tuza::http {

class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  struct Limits {
    std::size_t per_origin, in_all;            // open at once; 0: no limit
    std::size_t idle_per_origin, idle_in_all;  // kept for later
    std::chrono::milliseconds idle_timeout;
  };
  struct Counts {
    std::size_t open = 0, idle = 0, waiting = 0;
  };
  // Whose connections serve each other's requests. `tunnel`: to the same server through a proxy that forwards other requests.
  struct OriginView {
    bool https = false, tunnel = false;
    std::string_view authority;
  };
  // Which idle connection may serve. kReported: one of which the poller has reported nothing since its last response, if that was
  // a moment ago; it may be gone nevertheless, and the request has to be sent again. kAsked: the kernel is asked.
  enum class Idle : std::uint8_t { kNone, kReported, kAsked };
  class Lease;

  explicit ClientPool(const Limits& limits) : limits_(limits) {}
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  // A place for a connection to `origin`, with an idle one if there is one that may serve. The context's cause if it ends
  // first, Errc::kClosed after close().
  [[nodiscard]] Result<Lease> take(const Context& ctx, const OriginView& origin, Idle idle);
  // Closes idle connections now, others when they are given back; callers that wait get Errc::kClosed. May be repeated.
  void close();
  void close_idle();
  [[nodiscard]] Counts counts() const;

 private:
  struct Origin;
  struct Connection {
    net::Conn conn;
    Origin* origin;
    bool tls;
    net::TimePoint idle_since{};
  };
  using Connections =
      std::list<Connection>;  // of one element while in use: it moves between lists, not in memory
  using IdleStack = std::vector<Connections::iterator>;
  struct OriginName {
    bool https, tunnel;
    std::string authority;
  };
  struct ByName {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const {
      return std::tuple(a.https, a.tunnel, std::string_view(a.authority)) <
             std::tuple(b.https, b.tunnel, std::string_view(b.authority));
    }
  };
  struct Origin {
    const OriginName* name = nullptr;
    std::size_t open = 0;
    std::size_t waiting = 0;
    IdleStack idle{};
  };
  using Origins = std::map<OriginName, Origin, ByName>;
  struct Waiter {
    Origin& origin;
    bool has_place = false;
    Connections given{};  // empty: a place without a connection
    bool served = false;
    Semaphore ready{0};
  };

  Result<Lease> wait(const Context& ctx, std::unique_lock<Mutex>& lock, Origin& origin, Idle idle);
  [[nodiscard]] Result<void> wait_to_be_served(const Context& ctx, std::unique_lock<Mutex>& lock, Waiter& me);
  [[nodiscard]] Result<bool> wait_for_room(const Context& ctx, Lease& lease);
  void forget_left_waiters();
  [[nodiscard]] bool has_place(const Origin& origin) const;
  bool make_place(Origin& origin, Connections& closing);
  void serve_one(bool room);
  void give(Waiter& waiter, Connections&& connection);
  Connections take_idle(Connections::iterator at);
  void keep(Connections&& connection);
  void drop_idle(Connections::iterator at, Connections& closing);
  [[nodiscard]] bool first_needs_place(const Origin& origin) const;
  void lose_place(Origin& origin, bool dialling);
  void free_place(Origin& origin, bool dialling);
  void forget_unused(Origin& origin);
  void sweep();
  void arm(std::chrono::nanoseconds delay);

  const Limits limits_;
  mutable Mutex mutex_;
  Origins origins_;
  std::size_t open_ = 0;
  std::size_t dialling_ = 0;    // of those, the places without a connection
  Connections idle_;            // the oldest first
  std::list<Waiter*> waiters_;  // in the order of their coming
  rt::RunMark run_;             // in which somebody has last waited
  std::optional<DelayedCall> sweeper_;
  bool sweeping_ = false;  // the sweeper is armed
  bool closed_ = false;
};

// A place, and the connection in it. Movable. Its end closes the connection.
class ClientPool::Lease {
 public:
  Lease(Lease&& other) noexcept
      : pool_(std::move(other.pool_)), origin_(other.origin_), connection_(std::move(other.connection_)) {}
  Lease& operator=(Lease&& other) noexcept {
    if (this != &other) {
      end();
      pool_ = std::move(other.pool_);
      origin_ = other.origin_;
      connection_ = std::move(other.connection_);
    }
    return *this;
  }
  ~Lease() { end(); }

  [[nodiscard]] bool has_conn() const { return !connection_.empty(); }
  // Whether nothing has come, not even the end, since the last response. Parks for a moment.
  [[nodiscard]] bool is_fresh(Idle idle);
  [[nodiscard]] net::Conn& conn() { return connection_.front().conn; }
  // For a place without a connection, where there is no descriptor for one: waits for a connection that is given back, or for the
  // descriptor of one that is closed. False: there is none to wait for. Parks.
  [[nodiscard]] Result<bool> wait_for_room(const Context& ctx) { return pool_->wait_for_room(ctx, *this); }
  // Closes the connection. The place stays.
  void drop_conn();
  // In a place without a connection.
  void set_conn(net::Conn conn, bool tls);
  // Gives the connection back for others. The lease is over.
  void keep();

 private:
  friend class ClientPool;
  Lease(std::shared_ptr<ClientPool> pool, Origin& origin, Connections connection)
      : pool_(std::move(pool)), origin_(&origin), connection_(std::move(connection)) {}
  void end();

  std::shared_ptr<ClientPool> pool_;  // null: over
  Origin* origin_;
  Connections connection_;
};

}  // namespace tuza::http
