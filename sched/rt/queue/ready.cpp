#include <tuza/sched/rt/queue/ready.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <utility>

namespace tuza::rt {
namespace {

// A wake-up costs the waker 13 us and takes 45 us to arrive on another core (measured on a virtual machine
// with 2 cores). It pays when the queued work lasts longer than that.
constexpr std::int64_t kWakePaysNs = 50'000;

// Handles a full LRQ: its older half and `g` go to the GRQ in one batch. The batch is shuffled, so that
// goroutines that were spawned together do not stay together and starve their neighbours (rule 2). Not
// inlined: its frame is large, and put_last() runs on goroutine stacks.
[[gnu::noinline]] bool overflow(Sched& sched, RunQueue& queue, M* m, G* g, Level level) {
  std::array<G*, kLocalQueueCapacity / 2 + 1> batch;
  const std::uint32_t n = RunQueue::Owner(queue).take_half(std::span(batch).first<kLocalQueueCapacity / 2>());
  if (n == 0) return false;  // a thief made room
  batch[n] = g;
  for (std::uint32_t i = n; i > 0; --i) std::swap(batch[i], batch[m->random.below(i + 1)]);
  sched.grq[level].push(std::span(batch).first(n + 1));
  return true;
}

}  // namespace

void put_last(Sched& sched, P& p, M* m, G* g, Level level) {
  if (chaos::diverts_to_grq(sched, m, g)) return;
  RunQueue& queue = p.local(level);
  while (!RunQueue::Owner(queue).push(g)) {
    if (overflow(sched, queue, m, g, level)) return;
  }
}

void put_last_in_order(Sched& sched, P& p, M* m, GList&& batch, Level level) {
  if (level == Level::kWoken && sched.backlog.lasts()) {
    sched.grq[Level::kLatecomer].push(std::move(batch));
    return;
  }
  RunQueue::Owner queue(p.local(level));
  while (sched.grq[level].size() == 0 && !batch.empty()) {
    G* g = batch.pop_front();
    if (chaos::diverts_to_grq(sched, m, g) || queue.push(g)) continue;
    batch.push_front(g);
    break;
  }
  if (!batch.empty()) sched.grq[level].push(std::move(batch));
}

void put_next(Sched& sched, P& p, M* m, G* g) {
  if (chaos::diverts_to_grq(sched, m, g)) return;
  // release: a thief that takes `g` from runnext must see the goroutine. acquire: this M must see the
  // goroutine that another thread put there.
  G* before = p.runnext.exchange(g, std::memory_order_acq_rel);
  if (before == nullptr) return;
  // The limit: one goroutine may start any number of others, and all of them would run before goroutines that
  // are woken.
  if (sched.backlog.lasts() && sched.grq[Level::kLatecomer].size() < Backlog::kThreshold) [[unlikely]] {
    sched.grq[Level::kLatecomer].push(before);
  } else {
    put_last(sched, p, m, before, Level::kNew);
  }
}

void empty_queues(Sched& sched, P& p) {
  GList woken, others;
  while (G* g = RunQueue::Owner(p.woken).pop()) woken.push_back(g);
  if (G* g = p.runnext.exchange(nullptr, std::memory_order_acq_rel)) {
    if (sched.backlog.lasts()) {
      sched.grq[Level::kLatecomer].push(g);
    } else {
      others.push_back(g);
    }
  }
  while (G* g = RunQueue::Owner(p.queue).pop()) others.push_back(g);
  if (!woken.empty()) sched.grq[Level::kWoken].push(std::move(woken));
  if (!others.empty()) sched.grq[Level::kNew].push(std::move(others));
}

void inject(Sched& sched, G* g, Level level) {
  if (level == Level::kWoken) level = sched.backlog.level_of_woken();
  sched.grq[level].push(g);
  wake_one(sched);
}

void inject(Sched& sched, GList&& batch, Level level) {
  if (batch.empty()) return;
  if (level == Level::kWoken) level = sched.backlog.level_of_woken();
  sched.grq[level].push(std::move(batch));
  wake_one(sched);
}

void unpark(M* m, G* g) {
  g->win();
  if (m->p != nullptr) {
    put_next(*m->sched, *m->p, m, g);
  } else {
    inject(*m->sched, g, Level::kNew);
  }
}

void wake_if_it_pays(Sched& sched, const P& p) {
  // All loads are relaxed, because this decision affects only speed. Nothing is lost if no M is woken: the
  // holder of `p` is awake and will run what it queued, and sysmon handles a holder that does not come back.
  if (sched.idle_ps.count() == 0 || sched.spinning.load(std::memory_order_relaxed) != 0) return;
  const std::int64_t run_ns = p.average_run_ns.load(std::memory_order_relaxed);
  // A goroutine in runnext runs soon, right after the current one, unless goroutines run long on this P.
  const bool runs_long = run_ns >= kWakePaysNs;
  const std::int64_t queued =
      std::int64_t{runs_long ? p.queued() : p.woken.size() + p.queue.size()} + sched.grq.size();
  if (queued * run_ns >= kWakePaysNs) wake_one(sched);
}

}  // namespace tuza::rt
