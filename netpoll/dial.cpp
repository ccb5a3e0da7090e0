#include <netinet/in.h>
#include <netinet/tcp.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/keep_alive.h>
#include <tuza/netpoll/socket/new_socket.h>
#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tuza::net {
namespace {

using Side = Descriptor::Side;

// Both versions of IP by turns, beginning with that of the first name (RFC 8305, section 4): if one version leads nowhere,
// that costs one delay, however many addresses of it there are.
void alternate_versions(std::vector<SocketName>& names) {
  const auto preferred = names.front().storage.ss_family;
  std::vector<SocketName> first, second;
  std::ranges::partition_copy(names, std::back_inserter(first), std::back_inserter(second),
                              [=](const SocketName& name) { return name.storage.ss_family == preferred; });
  names.clear();
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) names.push_back(first[i]);
    if (i < second.size()) names.push_back(second[i]);
  }
}

// resolve_to_dial() within the limit of a dial().
Result<std::vector<Endpoint>> resolve_within(std::string_view network, std::string_view address,
                                             TimePoint deadline, const Context* ctx) {
  if (ctx != nullptr) return resolve_to_dial(*ctx, network, address);
  if (deadline == kNoDeadline) return resolve_to_dial(Context::background(), network, address);
  const auto limited =
      with_deadline(Context::background(), deadline, Error(Errc::kTimeout, "dial", std::string(address)));
  return resolve_to_dial(limited.ctx(), network, address);
}

// The names to try, in this order; at least one.
Result<std::vector<SocketName>> names_of(std::string_view network, std::string_view address,
                                         TimePoint deadline, const Context* ctx) {
  if (network == "unix") {
    if (const std::optional<SocketName> name = SocketName::of_path(address)) return std::vector{*name};
    const bool bad = address.empty() || address.find('\0') != address.npos;
    return std::unexpected(Error::from_errno(bad ? EINVAL : ENAMETOOLONG, "dial", std::string(address)));
  }
  const Result<std::vector<Endpoint>> endpoints = resolve_within(network, address, deadline, ctx);
  if (!endpoints) return std::unexpected(endpoints.error());
  std::vector<SocketName> names;
  for (const Endpoint& endpoint : *endpoints) names.push_back(SocketName::of(endpoint));
  alternate_versions(names);
  return names;
}

// Calls connect(2); the result is in `begun`. EAGAIN occurs with Unix sockets: the listener's queue is full,
// and no event reports free space. The function therefore retries with increasing pauses. (Other systems say ECONNREFUSED,
// which may mean as well that nobody listens: it is reported.)
Result<void> call_peer(const NewSocket& socket, const SocketName& peer, TimePoint deadline,
                       const Context* ctx, long& begun) {
  constexpr std::chrono::milliseconds kFirstPause{1}, kLongestPause{20};
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    begun = sys::connect(socket.fd(), peer.address(), peer.length);
    if (begun == -EALREADY || begun == -EISCONN)
      begun = -EINPROGRESS;  // a call interrupted by a signal continues in the kernel
    if (begun != -EAGAIN && begun != -EINTR) return {};
    if (ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
    // Compare with the deadline, not with the remaining time, which overflows for a deadline before the
    // clock's zero.
    const TimePoint now = tuza::now();
    if (deadline <= now) return std::unexpected(Error(Errc::kTimeout, "dial"));
    sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline - now));
  }
}

Result<Conn> connect_once(const SocketName& peer, std::string_view address, TimePoint deadline,
                          const Context* ctx) {
  const auto fail = [&](const Error& error) {
    return std::unexpected(Error(error.code(), "dial", std::string(address)));
  };
  const bool tcp = peer.storage.ss_family != AF_UNIX;
  NewSocket socket(peer.storage.ss_family, tcp ? IPPROTO_TCP : 0);
  if (socket.fd() < 0) return fail(Error::from_errno(static_cast<int>(-socket.fd()), "dial"));
  if (tcp) {
    socket.set(IPPROTO_TCP, TCP_NODELAY, 1);
    keep_alive(socket);
  }
  // Connect before registering: the poller would report a socket that is not yet connecting as hung up.
  long begun = 0;
  if (Result<void> called = call_peer(socket, peer, deadline, ctx, begun); !called) {
    return ctx != nullptr && ctx->done() ? std::unexpected(ctx->cause()) : fail(called.error());
  }
  if (begun != 0 && begun != -EINPROGRESS) return fail(Error::from_errno(static_cast<int>(-begun), "dial"));
  const auto watch = begun == 0 ? Descriptor::Watch::kReads : Descriptor::Watch::kBoth;
  Result<Descriptor*> opened = Descriptor::open(socket.release(), "dial", watch);
  if (!opened) return fail(opened.error());
  Conn conn = detail::ConnParts::make(detail::DescriptorOwner(*opened));
  conn.set_write_deadline(deadline);
  const auto look = [](int fd) -> long {
    int error = 0;
    socklen_t length = sizeof error;
    // If the query itself fails, report its error: a failed connection would otherwise look like a pending
    // one.
    const long asked = sys::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (asked != 0 || error != 0) return asked != 0 ? asked : -error;
    SocketName found;
    // Neither failed nor connected: still pending.
    const long named = found.ask(sys::getpeername, fd);
    return named == -ENOTCONN ? -EAGAIN : named;
  };
  const Result<long> connected = (*opened)->retry(Side::kWrite, "dial", look, ctx);
  if (!connected && ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
  if (!connected) return fail(connected.error());
  conn.set_write_deadline(kNoDeadline);
  return conn;
}

// A client whose local port the system chooses gets, once in some ten thousand, the port that it dials. If nobody listens
// there, both ends of the new connection are this socket.
bool is_connected_to_itself(Conn& conn, const SocketName& peer) {
  if (peer.storage.ss_family == AF_UNIX) return false;
  const Result<Endpoint> local = conn.local_endpoint();
  return local && *local == *peer.endpoint();
}

Result<Conn> dial_one(const SocketName& peer, std::string_view address, TimePoint deadline,
                      const Context* ctx) {
  constexpr int kTries = 3;  // the system goes on to another port, unless it has no other
  for (int i = 0; i < kTries; ++i) {
    Result<Conn> conn = connect_once(peer, address, deadline, ctx);
    if (!conn || !is_connected_to_itself(*conn, peer)) return conn;
    (void)conn->set_linger_zero();  // TIME_WAIT would keep the service from the port for a minute
  }
  return std::unexpected(Error::from_errno(ECONNREFUSED, "dial", std::string(address)));
}

// The attempts to reach one of several peers (RFC 8305, section 5), each on a goroutine of its own.
//
// Thread-unsafe: one goroutine calls run(). The attempts touch `outcomes_`, which has room for all of them, and what is
// constant; the destructor ends and awaits them.
class Race {
 public:
  Race(std::span<const SocketName> peers, std::string_view address, TimePoint deadline, const Context* ctx)
      : peers_(peers),
        address_(address),
        deadline_(deadline),
        ctx_(ctx),
        racing_(with_cancel(ctx != nullptr ? *ctx : Context::background())),
        outcomes_(peers.size()) {}
  ~Race() {
    racing_.cancel();
    attempts_.wait();
  }
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  Result<Conn> run() {
    std::optional<Error> first;
    std::size_t first_peer = peers_.size();
    std::size_t failed = 0;
    for (;;) {
      if (may_begin()) {
        begin_next();
      } else if (failed == begun_) {
        break;
      }
      std::optional<Outcome> outcome = next_outcome();
      if (!outcome) continue;
      if (outcome->conn) return std::move(outcome->conn);
      ++failed;
      if (outcome->peer < first_peer) {
        first_peer = outcome->peer;
        first = outcome->conn.error();
      }
    }
    if (ctx_ != nullptr && ctx_->done()) return std::unexpected(ctx_->cause());
    if (is_late()) return std::unexpected(Error(Errc::kTimeout, "dial", std::string(address_)));
    return std::unexpected(*first);
  }

 private:
  struct Outcome {
    std::size_t peer;
    Result<Conn> conn;
  };

  [[nodiscard]] bool is_late() const { return deadline_ <= tuza::now(); }
  // The first attempt is made in any case, and says what is wrong.
  [[nodiscard]] bool may_begin() const {
    return begun_ == 0 || (begun_ < peers_.size() && !racing_.ctx().done() && !is_late());
  }

  void begin_next() {
    const std::size_t peer = begun_++;
    auto attempt = [this, peer] {
      outcomes_.send({peer, dial_one(peers_[peer], address_, deadline_, &racing_.ctx())});
    };
    attempts_.add(1);
    const Result<void> started = try_go({.name = "dial"}, [this, attempt] {
      attempt();
      attempts_.done();
    });
    if (started) return;
    attempts_.done();
    attempt();  // no memory for a goroutine: this one waits for the whole attempt
  }

  // nullopt: it is time to begin another attempt, if that is still allowed.
  std::optional<Outcome> next_outcome() {
    if (!may_begin()) return outcomes_.recv();
    const auto [pause, cancel] = with_timeout(racing_.ctx(), delay());
    Result<std::optional<Outcome>> outcome = outcomes_.recv(pause);
    return outcome ? std::move(*outcome) : std::nullopt;
  }

  // The rest of the time is divided among the attempts, so that all are made before the deadline.
  [[nodiscard]] std::chrono::nanoseconds delay() const {
    constexpr std::chrono::nanoseconds kDelay = std::chrono::milliseconds(250);
    const TimePoint end = std::min(deadline_, racing_.ctx().deadline().value_or(kNoDeadline));
    const TimePoint now = tuza::now();
    if (end <= now) return {};
    const auto shares = static_cast<std::int64_t>(peers_.size() - begun_ + 1);
    return std::min<std::chrono::nanoseconds>(kDelay, (end - now) / shares);
  }

  const std::span<const SocketName> peers_;
  const std::string_view address_;
  const TimePoint deadline_;
  const Context* const ctx_;
  const CancellableContext racing_;
  std::size_t begun_ = 0;
  Chan<Outcome> outcomes_;
  WaitGroup attempts_;
};

Result<Conn> dial_within(std::string_view network, std::string_view address, TimePoint deadline,
                         const Context* ctx) {
  const Result<std::vector<SocketName>> peers = names_of(network, address, deadline, ctx);
  if (!peers) return std::unexpected(peers.error());
  if (peers->size() == 1) return dial_one(peers->front(), address, deadline, ctx);
  return Race(*peers, address, deadline, ctx).run();
}

}  // namespace

Result<Conn> dial(std::string_view network, std::string_view address, TimePoint deadline) {
  return dial_within(network, address, deadline, nullptr);
}

Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address) {
  if (ctx.done()) return std::unexpected(ctx.cause());
  return dial_within(network, address, kNoDeadline, &ctx);
}

}  // namespace tuza::net
