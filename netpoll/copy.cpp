#include <tuza/netpoll/copy.h>

#include <tuza/netpoll/detail/idle_watch.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/splice.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>

namespace tuza::net {

Result<std::uint64_t> copy(const Context& ctx, Conn& to, Conn& from) {
  return detail::copy_by([&](std::span<std::byte> into) { return from.read(ctx, into); },
                         [&](std::span<const std::byte> data) { return to.write_all(ctx, data); });
}

namespace {

struct OneWay {
  Descriptor& to;
  Descriptor& from;
  IdleWatch& watch;
  const Context& ctx = watch.ctx();
  std::uint64_t copied = 0;
  bool can_splice = true;

  // Moves what `from` has received and still receives, until it has nothing at the moment. The number of bytes.
  Result<std::uint64_t> splice() {
    const Spliced spliced = splice_received(to, from, std::numeric_limits<std::uint64_t>::max(), ctx,
                                            [this](std::size_t) { watch.moved(); });
    can_splice = spliced.possible;
    copied += spliced.bytes;
    if (spliced.read_error) return std::unexpected(*spliced.read_error);
    if (spliced.write_error) return std::unexpected(*spliced.write_error);
    return spliced.bytes;
  }

  // By way of a buffer. The number of bytes, 0 at the end.
  Result<std::size_t> copy(std::span<std::byte> space) {
    const Result<std::size_t> n = from.read(space, &ctx);
    if (!n || *n == 0) return n;
    watch.moved();
    if (const Result<void> sent = to.write_all(space.first(*n), &ctx); !sent) {
      return std::unexpected(sent.error());
    }
    copied += *n;
    return n;
  }
};

// A short message costs least by way of a buffer. What fills the buffer is probably part of a long transfer: the rest goes
// by splice(2), and so does what comes later, as long as it comes in portions of at least that size. A long transfer took half
// the CPU time of copying, in writes of 16 KiB as in those of 1 MiB.
Result<std::uint64_t> relay_sockets(IdleWatch& watch, Descriptor& to, Descriptor& from) {
  OneWay way{to, from, watch};
  const auto space = std::make_unique_for_overwrite<std::byte[]>(detail::kCopyBytes);
  for (bool much = false;;) {
    if (much) {
      if (const Result<void> ready = from.wait_for_data(&way.ctx); !ready)
        return std::unexpected(ready.error());
    } else {
      const Result<std::size_t> n = way.copy(std::span(space.get(), detail::kCopyBytes));
      if (!n) return std::unexpected(n.error());
      if (*n == 0) return way.copied;
      if (*n < detail::kCopyBytes || !way.can_splice) continue;
    }
    const Result<std::uint64_t> spliced = way.splice();  // 0 at the end, and without a pipe: copy() goes on
    if (!spliced) return std::unexpected(spliced.error());
    much = *spliced >= detail::kCopyBytes;
  }
}

// TLS, and connections in memory.
Result<std::uint64_t> relay_streams(IdleWatch& watch, Conn& to, Conn& from) {
  const auto read = [&](std::span<std::byte> into) {
    const Result<std::size_t> n = from.read(watch.ctx(), into);
    watch.moved();
    return n;
  };
  return detail::copy_by(read,
                         [&](std::span<const std::byte> data) { return to.write_all(watch.ctx(), data); });
}

}  // namespace

Result<std::uint64_t> detail::relay_one_way(IdleWatch& watch, Conn& to, Conn& from) {
  if (to.transport_ || from.transport_) return relay_streams(watch, to, from);
  return relay_sockets(watch, detail::ConnParts::descriptor(to), detail::ConnParts::descriptor(from));
}

Result<Relayed> relay(const Context& ctx, Conn& first, Conn& second, const RelayOptions& options) {
  IdleWatch watch(ctx, options.idle_timeout);
  std::atomic<bool> failed = false;  // the direction that sets it writes `error`
  std::optional<Error> error;        // read when both directions have ended
  const auto fail = [&](const Error& why) {
    if (failed.exchange(true)) return;  // an error that follows from the closing below, perhaps
    error = why;
    // What breaks off on one side does so on the other: it must not take a part for the whole, nor what is lost for delivered. What
    // the caller ends, by its context, a deadline or close(), ends in order, and so does TLS without a close_notify: a reset would
    // take with it what is still on its way, and many clients close like that.
    const bool in_order = watch.ctx().done() || why.code().category() == error_category();
    if (!in_order) {
      (void)first.set_linger_zero();
      (void)second.set_linger_zero();
    }
    first.close();
    second.close();
  };
  const auto one_way = [&](Conn& to, Conn& from) -> std::uint64_t {
    try {
      const Result<std::uint64_t> n = detail::relay_one_way(watch, to, from);
      const Result<void> ended = n ? to.close_write() : std::unexpected(n.error());
      if (!ended) fail(ended.error());
      return n.value_or(0);
    } catch (const std::bad_alloc&) {  // the other direction uses what belongs to this call
      fail(Error::from_errno(ENOMEM, "relay"));
      return 0;
    }
  };
  Relayed relayed;
  WaitGroup other;
  const Result<void> started =
      other.try_go({.name = "relay"}, [&] { relayed.second_to_first = one_way(first, second); });
  if (!started) return std::unexpected(started.error());
  relayed.first_to_second = one_way(second, first);
  other.wait();
  if (error) return std::unexpected(*error);
  return relayed;
}

Result<Relayed> relay(Conn& first, Conn& second) { return relay(Context::background(), first, second); }

}  // namespace tuza::net
