#include <tuza/netpoll/serve.h>

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/netpoll/socket/backlog.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/detail/member.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::net {
namespace {

using namespace std::chrono_literals;

constexpr auto kStep = 5ms;

std::int64_t limit_on_connections(const ServeOptions& options) {
  return static_cast<std::int64_t>(options.max_connections != 0 ? options.max_connections
                                                                : connections_allowed());
}

ServeOptions checked(ServeOptions options) {
  if (options.proxy_protocol != ProxyProtocol::kOff && options.proxies.empty()) {
    throw std::invalid_argument(
        "net::ServeOptions: proxy_protocol without proxies, whose headers are believed");
  }
  if (options.stack_bytes > kStackBytesMax) {
    throw std::invalid_argument("net::ServeOptions: stack_bytes is above 64 MiB");
  }
  return options;
}

template <class Handler>
Handler checked(Handler handler) {
  if (!handler) throw std::invalid_argument("net::serve: no handler");
  return handler;
}

void say_out_of_resources(const std::string& address, const Error& error, std::size_t open) try {
  static LogLimiter limiter;
  limiter.log(LogLevel::kWarning, "tuza: " + address + ": " + error.message() +
                                      "; new connections wait, or are closed (" + std::to_string(open) +
                                      " are open)");
} catch (const std::bad_alloc&) {
  log_line(LogLevel::kWarning, "tuza: no memory; new connections wait, or are closed");
}

}  // namespace

std::size_t connections_allowed() {
  const std::size_t descriptors = descriptors_allowed();
  const std::size_t others = std::clamp(descriptors / 4, kDescriptorsForOthers, kDescriptorsForCalls);
  return std::max({descriptors - std::min(descriptors, others), descriptors / 2, std::size_t{1}});
}

// A descriptor kept in reserve. When no other is left, closing it frees a number to accept one client and
// turn it away.
class SpareDescriptor {
 public:
  SpareDescriptor() { reopen(); }
  ~SpareDescriptor() {
    if (fd_ >= 0) sys::close(fd_);
  }
  SpareDescriptor(const SpareDescriptor&) = delete;
  SpareDescriptor& operator=(const SpareDescriptor&) = delete;

  // Whether the error concerns somebody. accept(2) asks for a descriptor before it looks for a client, and fails without one where
  // nobody waits, too; other errors come behind a client, who is lost.
  static bool is_wanted(Listener& listener, const Error& error) {
    const bool came_first =
        error.is(std::errc::too_many_files_open) || error.is(std::errc::too_many_files_open_in_system);
    if (!came_first || listener.backlog_ != nullptr) return true;
    const Result<long> ready = listener.descriptor_->control("poll", [](int fd) {
      struct pollfd listening{.fd = fd, .events = POLLIN, .revents = 0};
      struct timespec at_once{};
      return sys::poll(&listening, 1, &at_once);
    });
    return !ready || *ready != 0;
  }

  // Takes the oldest connection out of the backlog and closes it. Another thread may take the freed
  // descriptor first; then no connection is turned away, and the reserve is reopened when a descriptor is
  // free again.
  void drop_one_connection(Listener& listener) {
    if (listener.backlog_ != nullptr) return listener.backlog_->drop_one();
    if (fd_ >= 0) sys::close(std::exchange(fd_, -1));
    (void)listener.descriptor_->control("accept", [](int fd) -> long {
      const long accepted = sys::accept4(fd, nullptr, nullptr, sys::kNonBlocking | sys::kCloseOnExec);
      return accepted < 0 ? accepted : sys::close(accepted);
    });
    reopen();
  }

 private:
  void reopen() { fd_ = sys::openat(AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC); }
  long fd_ = -1;
};

bool Session::begin_idle() {
  // seq_cst on both accesses, against shutdown(): either shutdown() finds this session idle, or the load here
  // sees the shutdown.
  idle_since_ns_.store(coarse_now_ns(), std::memory_order_relaxed);
  makes_room_.store(false, std::memory_order_relaxed);
  idle_.store(true, std::memory_order_seq_cst);
  if (!server_.draining_.load(std::memory_order_seq_cst)) [[likely]]
    return true;
  end_idle();  // the handler may still read; the interruption must not hit that read
  return false;
}

void Session::interrupt_if_idle() {
  if (idle_.exchange(false, std::memory_order_seq_cst)) conn_.set_read_deadline(TimePoint::min());
}

void Session::take_interruption_back() {
  // shutdown() holds the mutex from its decision until it has set the deadline.
  const LockGuard lock(server_.mutex_);
  conn_.set_read_deadline(kNoDeadline);
}

// Either shutdown() finds the notice, or the load here sees the shutdown.
Context Session::shutdown_notice() {
  const LockGuard lock(server_.mutex_);
  if (!server_.notice_) server_.notice_.emplace(with_cancel(Context::background()));
  if (server_.draining_.load(std::memory_order_seq_cst)) {
    server_.notice_->cancel(server_.cause());
  }
  return server_.notice_->ctx();
}

Server::Server(Listener&& listener, Handler handler, const ServeOptions& options)
    : own_listener_(std::move(listener)),
      listener_(*own_listener_),
      handler_(checked(std::move(handler))),
      options_(checked(options)),
      slots_max_(limit_on_connections(options)),
      slots_(slots_max_),
      addresses_(options.connections_per_address_max) {
  run_.set();
}

Server::Server(Listener& listener, Handler handler, const ServeOptions& options)
    : listener_(listener),
      handler_(checked(std::move(handler))),
      options_(checked(options)),
      slots_max_(limit_on_connections(options)),
      slots_(slots_max_),
      addresses_(options.connections_per_address_max) {
  run_.set();
}

Server::~Server() {
  if (connections() != 0) rt::fatal("net::Server destroyed while connections are open");
}

// Discards the connections that the end of a runtime has left open. They are no longer served: their sessions
// were on stacks that no longer exist, and their slots are never released.
void Server::begin_run() {
  const LockGuard lock(mutex_);
  if (run_.ended()) {
    slots_.emplace(slots_max_);
    connections_.store(0, std::memory_order_relaxed);
    sessions_ = nullptr;
    addresses_.clear();
  }
  run_.set();
}

ServeStats Server::stats() const {
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.over_address_max = value(over_address_max_),
          .not_from_proxy = value(not_from_proxy_),
          .bad_proxy_headers = value(bad_proxy_headers_),
          .no_memory = value(no_memory_),
          .made_room = value(made_room_)};
}

Result<void> Server::serve() {
  begin_run();
  const Result<void> result = accept_loop();
  // Wait in short intervals: shutdown() may be called later, and give up.
  while (!given_up_.load(std::memory_order_relaxed) && !wait_for_sessions(now() + 1ms)) {
  }
  return result;
}

Result<void> Server::accept_loop() {
  constexpr std::chrono::milliseconds kFirstPause = kStep;
  SpareDescriptor spare;
  std::chrono::milliseconds pause = kFirstPause;
  while (!draining_.load(std::memory_order_relaxed)) {
    Result<Conn> conn = listener_.accept();
    if (conn) {
      pause = kFirstPause;
      try {
        admit(std::move(*conn));
      } catch (const std::bad_alloc&) {
        say_no_memory();
      }
      continue;
    }
    if (conn.error().closed()) return {};
    if (!is_out_of_resources(conn.error())) return std::unexpected(conn.error());
    if (spare.is_wanted(listener_, conn.error())) {
      outlast_shortage(conn.error(), spare, pause);
    } else {
      sleep_for(kStep);
    }
  }
  return {};
}

// A client is waiting, or has been turned away. `pause`: how long to wait for room if no connection can make any.
void Server::outlast_shortage(const Error& error, SpareDescriptor& spare, std::chrono::milliseconds& pause) {
  const std::size_t open = connections();
  say_out_of_resources(address(), error, open);
  const bool some_go = make_room() > 0;
  if (!some_go) spare.drop_one_connection(listener_);
  const auto patience = some_go ? kPatience : pause;
  // Sleep in short steps: a connection that ends makes room, and shutdown() should not be delayed.
  for (auto waited = 0ms; waited < patience && connections() >= open && !draining_.load(); waited += kStep)
    sleep_for(kStep);
  if (!some_go) pause = std::min<std::chrono::milliseconds>(pause * 2, 1s);
}

void Server::start(Conn conn, AddressCounts::Held held) {
  // seq_cst on all four accesses, against shutdown(): either shutdown() counts this connection, or the load
  // here sees the shutdown. A connection that shutdown() has not counted must not be served: nobody would end
  // it.
  connections_.fetch_add(1, std::memory_order_seq_cst);
  if (draining_.load(std::memory_order_seq_cst)) {
    held = {};
    return end_connection();
  }
  const Result<void> started =
      try_go({.name = "conn", .stack_bytes = options_.stack_bytes, .stack_setting = options_.stack_setting},
             [this, conn = std::move(conn), held = std::move(held)]() mutable {
               run(std::move(conn), std::move(held));
             });
  if (started) return;
  say_no_memory();
  end_connection();
}

void Server::say_no_memory() {
  static LogLimiter limiter;
  no_memory_.fetch_add(1, std::memory_order_relaxed);
  limiter.log(LogLevel::kError, "tuza: no memory for another connection's goroutine; it is closed");
}

void Server::end_connection() {
  slots_->release();
  // The last access to the server: a thread that waits for the count to reach zero may then destroy the
  // server.
  connections_.fetch_sub(1, std::memory_order_release);
}

void Server::run(Conn conn, AddressCounts::Held held) {
  struct Ended {
    Server& server;
    AddressCounts::Held held;
    ~Ended() {
      rt::destroy_locals();  // before shutdown() returns, whose caller may destroy what they refer to
      held = {};
      server.end_connection();
    }
  } ended{*this, std::move(held)};
  Session session(*this, std::move(conn));
  add(session);
  struct Removed {
    Server& server;
    Session& session;
    ~Removed() { server.remove(session); }
  } removed{*this, session};
  if (options_.proxy_protocol != ProxyProtocol::kOff && !meet_client(session, ended.held)) return;
  handler_(session);
  session.conn_.farewell();
}

void Server::add(Session& session) {
  const LockGuard lock(mutex_);
  session.next_ = sessions_;
  if (sessions_ != nullptr) sessions_->previous_ = &session;
  sessions_ = &session;
  if (forced_) detail::ConnParts::close(session.conn_, cause());
}

void Server::remove(Session& session) {
  const LockGuard lock(mutex_);
  (session.previous_ != nullptr ? session.previous_->next_ : sessions_) = session.next_;
  if (session.next_ != nullptr) session.next_->previous_ = session.previous_;
}

template <class Action>
void Server::for_each_session(Action action) {
  const LockGuard lock(mutex_);
  // With thousands of sessions the loop takes longer than a slice, and every session that ends waits for the
  // mutex: this goroutine must not be suspended behind others in the middle of the loop.
  const NoPreempt keep_going;
  for (Session* session = sessions_; session != nullptr; session = session->next_) action(*session);
}

bool Server::wait_for_sessions(TimePoint deadline) {
  // Polls in short intervals instead of waiting for a notification: this wait happens once in the life of a
  // server, and so a connection that ends need not notify anyone.
  while (connections_.load(std::memory_order_seq_cst) > 0) {
    if (now() >= deadline) return false;
    sleep_for(1ms);
  }
  return true;
}

bool Server::shutdown(TimePoint deadline, std::string why) {
  begin_run();
  why_ = std::move(why);
  draining_.store(true, std::memory_order_seq_cst);
  listener_.close();
  for_each_session([](Session& session) { session.interrupt_if_idle(); });
  {
    const LockGuard lock(mutex_);
    if (notice_) notice_->cancel(cause());
  }
  if (wait_for_sessions(deadline)) return true;
  {
    const LockGuard lock(mutex_);
    forced_ = true;  // for a session whose goroutine has not reached add() yet
  }
  const Error cut_off = cause();
  for_each_session([&](Session& session) { detail::ConnParts::close(session.conn_, cut_off); });
  if (!wait_for_sessions(now() + kNoticeTime)) given_up_.store(true, std::memory_order_relaxed);
  return false;
}

Result<void> serve(Listener& listener, ConnHandler handler, const ServeOptions& options) {
  const ConnHandler given = checked(std::move(handler));
  Server server(listener, [&given](Session& session) { given(session.conn()); }, options);
  return server.serve();
}

}  // namespace tuza::net
