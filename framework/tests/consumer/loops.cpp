// Built with checkpoints: loops that end only if other goroutines run.
#include <atomic>

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_relaxed)) {
  }
}
