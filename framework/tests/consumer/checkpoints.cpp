// Goroutines that wait for each other in loops: with checkpoints they share a few threads; without
// checkpoints each would end up on a thread of its own.
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>

void wait_for(const std::atomic<bool>& flag);

int main() {
  return tuza::run(tuza::RunOptions{.max_procs = 1}, [] {
    constexpr std::size_t kLoops = 60;
    std::array<std::atomic<bool>, kLoops + 1> turns{};
    tuza::WaitGroup group;
    for (std::size_t i = 0; i < kLoops; ++i) {
      group.go([&turns, i] {
        wait_for(turns[i + 1]);
        turns[i] = true;
      });
    }
    tuza::sleep_for(std::chrono::milliseconds(200));
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    turns.back() = true;
    group.wait();
    return threads < 40 ? 0 : 1;
  });
}
