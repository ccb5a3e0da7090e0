#include <tuza/sched/rt/idle_ms.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/machine_thread.h>
#include <tuza/sched/rt/sched.h>

#include <mutex>

namespace tuza::rt {

void IdleMs::push(M* m) {
  const std::scoped_lock lock(mutex_);
  m->idle_previous = nullptr;
  m->idle_next = top_;
  if (top_ != nullptr) top_->idle_previous = m;
  top_ = m;
  m->on_idle_list = true;
  size_.fetch_add(1, std::memory_order_relaxed);
}

M* IdleMs::pop() {
  const std::scoped_lock lock(mutex_);
  M* m = top_;
  if (m != nullptr) unlink(m);
  return m;
}

bool IdleMs::remove(M* m) {
  const std::scoped_lock lock(mutex_);
  if (!m->on_idle_list) return false;
  unlink(m);
  return true;
}

void IdleMs::unlink(M* m) {
  (m->idle_previous != nullptr ? m->idle_previous->idle_next : top_) = m->idle_next;
  if (m->idle_next != nullptr) m->idle_next->idle_previous = m->idle_previous;
  m->idle_next = m->idle_previous = nullptr;
  m->on_idle_list = false;
  size_.fetch_sub(1, std::memory_order_relaxed);
}

void MMaker::start(Sched& sched) {
  started_ = start_helper_thread(thread_, "tuza-maker", &MMaker::thread_main, &sched);
  if (!started_) fatal("cannot create the first threads of the runtime");
}

void MMaker::stop() {
  if (!started_) return;
  stopping_.store(true, std::memory_order_release);
  note_.wake();
  join_helper_thread(thread_);
  started_ = false;
}

void* MMaker::thread_main(void* argument) {
  auto* sched = static_cast<Sched*>(argument);
  sched->maker.run(*sched);
  return nullptr;
}

bool MMaker::make_one(Sched& sched) {
  starting_.fetch_add(1, std::memory_order_relaxed);
  if (start_m(sched)) return true;
  starting_.fetch_sub(1, std::memory_order_relaxed);
  // The Ms that exist have to do: fetch the one that waits in the poller.
  if (sched.poll.holder() == PollRole::Holder::kM) sched.poll.source()->wake();
  refused_.log(LogLevel::kWarning, "tuza: the system refuses another thread; going on with fewer");
  return false;
}

void MMaker::run(Sched& sched) {
  constexpr std::int64_t kRetryNs = 10'000'000;
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t requests = requests_.exchange(0, std::memory_order_acq_rel);
    if (requests == 0) {
      note_.sleep();
      continue;
    }
    bool made = true;
    if ((requests & static_cast<std::uint32_t>(Request::kRunOne)) != 0) {
      // Whoever asked found no idle M; one may have gone idle since, after it had looked for work.
      if (M* m = sched.idle_ms.pop(); m != nullptr) {
        m->note.wake();
      } else {
        made = make_one(sched);
      }
    }
    while (made && sched.idle_ms.size() + starting_.load(std::memory_order_relaxed) < kSpare) {
      made = make_one(sched);
    }
    if (!made) {
      note_.sleep(kRetryNs);
      requests_.fetch_or(requests, std::memory_order_acq_rel);
    }
  }
}

}  // namespace tuza::rt
