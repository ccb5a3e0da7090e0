#include <tuza/sched/sync/detail/destroyed.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/g.h>

namespace tuza::rt {
namespace {

class Names {
 public:
  explicit Names(std::string_view what) { text_ << what << " destroyed while goroutines wait for it: "; }

  void add(const WaitQueue& queue) {
    constexpr int kNamed = 8;
    for (const Waiter* w = queue.front(); w != nullptr; w = w->next) {
      if (++count_ > kNamed) continue;
      if (count_ > 1) text_ << ", ";
      add(w->wait->goroutine());
    }
    if (count_ > kNamed) more_ = count_ - kNamed;
  }

  [[noreturn]] void abort() {
    if (more_ > 0) text_ << ", and " << more_ << " more";
    fatal(text_.text());
  }

 private:
  void add(const G* g) {
    if (g == nullptr) {
      text_ << "a thread";
      return;
    }
    text_ << "goroutine " << g->id.get();
    const G::Name name = g->copy_name();
    if (name.text[0] != '\0') text_ << " (" << name.text << ")";
    text_ << " [" << tuza::name(g->wait_reason) << "]";
  }

  Line text_{Line::kNowhere};
  int count_ = 0, more_ = 0;
};

[[gnu::cold]] [[noreturn]] void abort_with(std::string_view what, const WaitQueue& queue,
                                           const WaitQueue* second) {
  Names names(what);
  names.add(queue);
  if (second != nullptr) names.add(*second);
  names.abort();
}

void check(std::string_view what, SpinLock& lock, const WaitQueue& queue, const WaitQueue* second) {
  if (is_forked_child()) return;
  const Enter rt;  // a goroutine must not lose its P while it holds the lock
  const LockGuard guard(lock);
  if (!queue.empty() || (second != nullptr && !second->empty())) abort_with(what, queue, second);
}

}  // namespace

void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue) {
  check(what, lock, queue, nullptr);
}

void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue,
                        const WaitQueue& second) {
  check(what, lock, queue, &second);
}

}  // namespace tuza::rt
