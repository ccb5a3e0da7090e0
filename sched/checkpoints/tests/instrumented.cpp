#include <tuza/sched/checkpoints/tests/instrumented.h>

#include <cstdlib>
#include <exception>

namespace tuza::instrumented {

std::uint64_t chain(std::uint64_t rounds) {
  std::uint64_t x = 88172645463325252ull;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

const std::uint64_t kChainAtStart = chain(kChainAtStartRounds);

void spin_until(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_relaxed)) {
  }
}

std::atomic<bool> g_in_handler{false}, g_leave_handler{false};

void spin_in_handler(int) {
  g_in_handler.store(true);
  spin_until(g_leave_handler);
}

namespace {

int compare(const void* a, const void* b) {
  const auto x = *static_cast<const std::uint64_t*>(a);
  const auto y = *static_cast<const std::uint64_t*>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

}  // namespace

void sort(std::vector<std::uint64_t>& numbers) {
  std::qsort(numbers.data(), numbers.size(), sizeof numbers[0], &compare);
}

namespace {

struct ComputesOnTheWayOut {
  std::uint64_t rounds;
  bool& right;
  ~ComputesOnTheWayOut() {
    const int before = std::uncaught_exceptions();
    if (chain(rounds) == 0 || before != 1 || std::uncaught_exceptions() != 1) right = false;
  }
};

[[gnu::noinline]] void dive(int depth, int id, std::uint64_t rounds, bool& right) {
  const ComputesOnTheWayOut frame{rounds, right};
  if (depth == 0) throw id;
  dive(depth - 1, id, rounds, right);
}

}  // namespace

int throw_through(int id, std::uint64_t rounds) {
  bool right = true;
  try {
    try {
      dive(3, id, rounds, right);
    } catch (const int& caught) {
      if (chain(rounds) == 0 || caught != id || std::uncaught_exceptions() != 0) right = false;
      throw;
    }
  } catch (int again) {
    return right && std::uncaught_exceptions() == 0 ? again : -1;
  }
  return -1;
}

}  // namespace tuza::instrumented
