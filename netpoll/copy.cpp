#include <tuza/netpoll/copy.h>

#include <tuza/sched/sync/wait_group.h>

#include <atomic>
#include <optional>

namespace tuza::net {

Result<std::uint64_t> copy(const Context& ctx, Conn& to, Conn& from) {
  return detail::copy_by([&](std::span<std::byte> into) { return from.read(ctx, into); },
                         [&](std::span<const std::byte> data) { return to.write_all(ctx, data); });
}

Result<Relayed> relay(const Context& ctx, Conn& first, Conn& second) {
  std::atomic<bool> failed = false;  // the direction that sets it writes `error`
  std::optional<Error> error;        // read when both directions have ended
  const auto fail = [&](const Error& why) {
    if (failed.exchange(true)) return;  // an error that follows from the closing below, perhaps
    error = why;
    first.close();
    second.close();
  };
  const auto one_way = [&](Conn& to, Conn& from) -> std::uint64_t {
    const Result<std::uint64_t> n = copy(ctx, to, from);
    if (!n) {
      fail(n.error());
      return 0;
    }
    if (const Result<void> ended = to.close_write(); !ended) fail(ended.error());
    return *n;
  };
  Relayed relayed;
  WaitGroup other;
  other.go([&] { relayed.second_to_first = one_way(first, second); });
  relayed.first_to_second = one_way(second, first);
  other.wait();
  if (error) return std::unexpected(*error);
  return relayed;
}

Result<Relayed> relay(Conn& first, Conn& second) { return relay(Context::background(), first, second); }

}  // namespace tuza::net
