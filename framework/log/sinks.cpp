#include <tuza/framework/log/sinks.h>

#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/detail/thread_mutex.h>

#include <atomic>
#include <utility>

namespace tuza::logging {

// Sinks in the order in which they were added. Nodes are only appended.
struct Sink {
  std::function<void(std::string_view)> pass;  // changed under mutex() once added; empty: removed
  std::atomic<Sink*> next{nullptr};
};

namespace {

std::atomic<Sink*> g_first{nullptr};

// Serializes removals and the threads of two Loggings, the first of which has been given up.
ThreadMutex& mutex() {
  static auto& kept = keep_for_ever<ThreadMutex>();
  return kept;
}

}  // namespace

Sink* add_sink(std::function<void(std::string_view)> pass) {
  auto& added = keep_for_ever<Sink>();
  added.pass = std::move(pass);
  // The release makes the function visible to the writing thread that finds the node.
  std::atomic<Sink*>* end = &g_first;
  for (Sink* next = nullptr; !end->compare_exchange_weak(next, &added, std::memory_order_acq_rel);
       next = nullptr) {
    if (next != nullptr) end = &next->next;
  }
  return &added;
}

void remove_sink(Sink* sink) {
  std::function<void(std::string_view)> removed;  // destroyed after the lock: it is the program's
  const LockGuard lock(mutex());
  removed.swap(sink->pass);
}

void pass_to_sinks(std::string_view lines) {
  if (g_first.load(std::memory_order_acquire) == nullptr) return;
  const LockGuard lock(mutex());
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n') + 1);
    for (Sink* sink = g_first.load(std::memory_order_acquire); sink != nullptr;
         sink = sink->next.load(std::memory_order_acquire)) {
      if (!sink->pass) continue;
      try {
        sink->pass(line);
      } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell, least of all the log
      }
    }
    lines.remove_prefix(line.size());
  }
}

}  // namespace tuza::logging
