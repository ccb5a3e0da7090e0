// Built with checkpoints: loops that do not end while others do not run.
#include <atomic>

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_relaxed)) {
  }
}
