#include <tuza/http/client/pool.h>

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/transport.h>
#include <tuza/sched/errorf.h>
#include <tuza/sched/time/clock.h>

#include <mutex>
#include <span>
#include <utility>

namespace tuza::http {
namespace {

// What comes unasked within this time could as well come behind a look into the socket: on its way it takes as long. What servers
// say to an idle connection, such as a 408 before they close it, comes later.
constexpr std::chrono::microseconds kMoment{100};

Error closed() { return {Errc::kClosed, "http client"}; }

}  // namespace

Result<ClientPool::Lease> ClientPool::take(const Context& ctx, const OriginView& name, Idle idle) {
  if (const Result<void> going_on = ctx.check(); !going_on) return std::unexpected(going_on.error());
  for (;;) {
    Connections closing;  // destroyed behind the lock
    std::unique_lock lock(mutex_);
    if (closed_) return std::unexpected(closed());
    forget_left_waiters();
    auto at = origins_.find(name);
    if (at == origins_.end()) {
      at = origins_.emplace(OriginName{name.https, name.tunnel, std::string(name.authority)}, Origin{}).first;
      at->second.name = &at->first;
    }
    Origin& origin = at->second;
    if (idle != Idle::kNone && !origin.idle.empty()) {
      Lease lease(shared_from_this(), origin, take_idle(origin.idle.back()));
      lock.unlock();
      if (lease.is_fresh(idle)) return lease;
      continue;  // the lease closes it
    }
    if (has_place(origin) || make_place(origin, closing)) {
      ++origin.open;
      ++open_;
      ++dialling_;
      return Lease(shared_from_this(), origin, {});
    }
    return wait(ctx, lock, origin, idle);
  }
}

Result<ClientPool::Lease> ClientPool::wait(const Context& ctx, std::unique_lock<Mutex>& lock, Origin& origin,
                                           Idle idle) {
  Waiter me{.origin = origin};
  const Result<void> woken = wait_to_be_served(ctx, lock, me);
  if (!me.served) {
    forget_unused(origin);
    return std::unexpected(woken.error());
  }
  Lease lease(shared_from_this(), origin, std::move(me.given));
  lock.unlock();
  if (woken) {
    if (lease.has_conn() && !lease.is_fresh(idle)) lease.drop_conn();
    return lease;
  }
  if (lease.has_conn()) lease.keep();  // otherwise the end of the lease gives the place away
  return std::unexpected(woken.error());
}

// An error may come too late: then `me` has been served nevertheless.
Result<void> ClientPool::wait_to_be_served(const Context& ctx, std::unique_lock<Mutex>& lock, Waiter& me) {
  run_.set();
  const auto place = waiters_.insert(waiters_.end(), &me);
  ++me.origin.waiting;
  lock.unlock();
  Result<void> woken = me.ready.acquire(ctx);
  if (!woken) woken = std::unexpected(errorf("wait for a connection: {}", woken.error()));
  lock.lock();
  --me.origin.waiting;
  if (me.served) return woken;
  if (!closed_) waiters_.erase(place);  // otherwise close() has emptied the list
  return std::unexpected(woken ? closed() : woken.error());
}

// Whoever gets a descriptor first has it: the caller may find none again, and come back.
Result<bool> ClientPool::wait_for_room(const Context& ctx, Lease& lease) {
  if (const Result<void> going_on = ctx.check(); !going_on) return std::unexpected(going_on.error());
  Connections closing;
  std::unique_lock lock(mutex_);
  if (closed_) return std::unexpected(closed());
  forget_left_waiters();
  if (!idle_.empty()) {
    drop_idle(idle_.begin(), closing);
    return true;
  }
  if (open_ == dialling_) return false;
  Waiter me{.origin = *lease.origin_, .has_place = true};
  const Result<void> woken = wait_to_be_served(ctx, lock, me);
  lease.connection_ = std::move(me.given);
  lock.unlock();
  if (!woken && lease.has_conn()) lease.keep();
  if (!woken) return std::unexpected(woken.error());
  if (lease.has_conn() && !lease.is_fresh(Idle::kAsked)) lease.drop_conn();
  return true;
}

// The goroutines that waited when their tuza::run ended are gone, and with them their stacks, which hold the waiters. Before each
// look at waiters_.
void ClientPool::forget_left_waiters() {
  if (!run_.ended()) return;
  run_.set();
  waiters_.clear();
  for (auto& [name, origin] : origins_) origin.waiting = 0;
  std::erase_if(origins_, [](const auto& one) { return one.second.open == 0; });
}

bool ClientPool::has_place(const Origin& origin) const {
  return (limits_.per_origin == 0 || origin.open < limits_.per_origin) &&
         (limits_.in_all == 0 || open_ < limits_.in_all);
}

// Takes the place of an idle connection, if that helps `origin`.
bool ClientPool::make_place(Origin& origin, Connections& closing) {
  const bool own = limits_.per_origin != 0 && origin.open >= limits_.per_origin;
  if (own ? origin.idle.empty() : idle_.empty()) return false;
  ++origin.waiting;  // it is still needed without a connection
  drop_idle(own ? origin.idle.front() : idle_.begin(), closing);
  --origin.waiting;
  return true;
}

// Something has become free, one connection or one place: gives it to the first caller that it serves. `room`: a connection
// has been closed, or will not be made.
void ClientPool::serve_one(bool room) {
  for (auto at = waiters_.begin(); at != waiters_.end(); ++at) {
    Waiter& waiter = **at;
    Origin& origin = waiter.origin;
    if (!origin.idle.empty()) {
      if (waiter.has_place) lose_place(origin, true);
      give(waiter, take_idle(origin.idle.back()));
    } else if (waiter.has_place) {
      if (!room) continue;
      give(waiter, {});
    } else if (has_place(origin)) {
      ++origin.open;
      ++open_;
      ++dialling_;
      give(waiter, {});
    } else {
      continue;
    }
    waiters_.erase(at);
    return;
  }
}

void ClientPool::give(Waiter& waiter, Connections&& connection) {
  waiter.given = std::move(connection);
  waiter.served = true;
  waiter.ready.release();  // under the lock: the waiter may go as soon as it has it
}

ClientPool::Connections ClientPool::take_idle(Connections::iterator at) {
  Connections taken;
  std::erase(at->origin->idle, at);
  taken.splice(taken.begin(), idle_, at);
  return taken;
}

// Closes an idle connection, behind the lock.
void ClientPool::drop_idle(Connections::iterator at, Connections& closing) {
  Origin& origin = *at->origin;
  closing.splice(closing.end(), take_idle(at));
  lose_place(origin, false);
  forget_unused(origin);
}

// Whether the first caller that a connection to `origin` could serve needs only its place, or its descriptor: it wants another
// origin, and the limit of all connections, or of the process, is what keeps it waiting.
bool ClientPool::first_needs_place(const Origin& origin) const {
  for (const Waiter* waiter : waiters_) {
    const Origin& wanted = waiter->origin;
    if (&wanted == &origin) return false;
    if (waiter->has_place) return true;
    if (limits_.in_all == 0) continue;
    if (limits_.per_origin == 0 || wanted.open < limits_.per_origin) return true;
  }
  return false;
}

// A connection whose request is over.
void ClientPool::keep(Connections&& connection) {
  Connections closing;
  const std::scoped_lock lock(mutex_);
  forget_left_waiters();
  Origin& origin = *connection.front().origin;
  const bool kept = !closed_ && limits_.idle_per_origin != 0 && limits_.idle_in_all != 0;
  if (!kept || first_needs_place(origin)) {
    closing = std::move(connection);
    lose_place(origin, false);
    serve_one(true);
    forget_unused(origin);
    return;
  }
  connection.front().idle_since = now();
  const Connections::iterator at = connection.begin();
  idle_.splice(idle_.end(), connection);
  origin.idle.push_back(at);
  serve_one(false);
  while (origin.idle.size() > limits_.idle_per_origin) drop_idle(origin.idle.front(), closing);
  while (idle_.size() > limits_.idle_in_all) drop_idle(idle_.begin(), closing);
  if (!idle_.empty() && !std::exchange(sweeping_, true)) arm(limits_.idle_timeout);
}

void ClientPool::free_place(Origin& origin, bool dialling) {
  const std::scoped_lock lock(mutex_);
  forget_left_waiters();
  lose_place(origin, dialling);
  serve_one(true);
  forget_unused(origin);
}

void ClientPool::lose_place(Origin& origin, bool dialling) {
  --origin.open;
  --open_;
  if (dialling) --dialling_;
}

// A crawler sees many origins once.
void ClientPool::forget_unused(Origin& origin) {
  if (origin.open == 0 && origin.waiting == 0) origins_.erase(origins_.find(*origin.name));
}

void ClientPool::arm(std::chrono::nanoseconds delay) {
  if (sweeper_) {
    sweeper_->reset(delay);
    return;
  }
  sweeper_ = after_func(delay, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  });
}

// Closes what has been idle for too long.
void ClientPool::sweep() {
  Connections closing;
  const std::scoped_lock lock(mutex_);
  const net::TimePoint time = now();
  while (!idle_.empty() && idle_.front().idle_since + limits_.idle_timeout <= time)
    drop_idle(idle_.begin(), closing);
  sweeping_ = !idle_.empty();
  if (sweeping_) arm(idle_.front().idle_since + limits_.idle_timeout - time);
}

void ClientPool::close_idle() {
  Connections closing;
  const std::scoped_lock lock(mutex_);
  while (!idle_.empty()) drop_idle(idle_.begin(), closing);
}

void ClientPool::close() {
  close_idle();
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  forget_left_waiters();
  for (Waiter* waiter : std::exchange(waiters_, {})) waiter->ready.release();
}

ClientPool::Counts ClientPool::counts() const {
  const std::scoped_lock lock(mutex_);
  return {open_, idle_.size(), waiters_.size()};
}

void ClientPool::Lease::set_conn(net::Conn conn, bool tls) {
  connection_.push_back(Connection{std::move(conn), origin_, tls});
  const std::scoped_lock lock(pool_->mutex_);
  --pool_->dialling_;
}

void ClientPool::Lease::drop_conn() {
  connection_.clear();
  const std::scoped_lock lock(pool_->mutex_);
  ++pool_->dialling_;
}

// What a peer sends unasked would be taken for the next response. Over TLS it may be a ticket, which a read takes off; it may also
// have been read already, together with the last response.
bool ClientPool::Lease::is_fresh(Idle idle) {
  constexpr std::chrono::milliseconds kBriefly{1};
  net::Transport* const layer = net::detail::ConnParts::transport(conn());
  if (idle == Idle::kReported && layer == nullptr && net::detail::ConnParts::descriptor(conn()).is_quiet() &&
      now() - connection_.front().idle_since < kMoment)
    return true;
  char byte = 0;
  const Result<std::size_t> n = conn().peek(std::span(&byte, 1));
  if (!n && !n.error().is(std::errc::operation_would_block)) return false;
  if (!n && (layer == nullptr || !layer->may_hold_data())) return true;
  if ((n && *n == 0) || !connection_.front().tls) return false;
  conn().set_read_deadline(net::kNoDeadline);
  const auto [ctx, cancel] = with_timeout(Context::background(), kBriefly);
  return !conn().read(ctx, std::span(&byte, 1)) && ctx.done();
}

void ClientPool::Lease::keep() {
  if (const auto pool = std::exchange(pool_, nullptr)) pool->keep(std::move(connection_));
}

void ClientPool::Lease::end() {
  const auto pool = std::exchange(pool_, nullptr);
  if (pool == nullptr) return;
  const bool dialling = connection_.empty();
  connection_.clear();
  pool->free_place(*origin_, dialling);
}

}  // namespace tuza::http
