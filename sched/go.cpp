#include <tuza/sched/go.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/goroutine_main.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

static_assert(kStackClassBytes.back() == kStackBytesMax);

std::uint64_t next_id(Sched& sched, P* p) {
  if (p == nullptr) return sched.gs.reserve_ids(1);
  if (p->id_next == p->id_end) {
    p->id_next = sched.gs.reserve_ids(GPool::kIdBlock);
    p->id_end = p->id_next + GPool::kIdBlock;
  }
  return p->id_next++;
}

void* closure_on_stack(const G& g, const SpawnRequest& request) {
  if (request.closure_bytes + request.closure_alignment > (g.stack.top - g.stack.low) / 2) {
    fatal("the function object of go() does not fit on the goroutine's stack");
  }
  return reinterpret_cast<void*>((g.stack.top - request.closure_bytes) &
                                 ~(std::uintptr_t{request.closure_alignment} - 1));
}

}  // namespace

Spawn spawn_begin(const SpawnRequest& request) {
  const Enter rt;
  ExternalEntry entry(rt.m());
  Sched* sched = entry.sched();
  if (sched == nullptr) {
    if (request.may_fail) return Spawn{.g = nullptr, .storage = nullptr, .refused = Spawned::kNotRunning};
    if (is_forked_child()) refuse_in_forked_child();
    fatal("go() outside tuza::run");
  }
  P* p = rt.p();
  const std::uint8_t stack_class =
      request.options.stack_bytes == 0 ? kDefaultStackClass : stack_class_for(request.options.stack_bytes);
  if (stack_class == kNoStackClass)
    return Spawn{.g = nullptr, .storage = nullptr, .refused = Spawned::kTooLarge};
  const bool small = request.closure_bytes <= G::kInlineClosureBytes &&
                     request.closure_alignment <= alignof(std::max_align_t);
  const bool bare = small && !request.may_fail && stack_class == kDefaultStackClass;
  const Claim claim = request.may_fail ? Claim::kMay : Claim::kMust;
  G* g = bare ? sched->gs.take(p) : sched->gs.take_with_stack(p, stack_class, claim);
  if (g == nullptr) return Spawn{nullptr, nullptr};
  g->id = next_id(*sched, p);
  g->parent_id = rt.g() == nullptr ? 0 : rt.g()->id.get();
  g->site_file = request.where.file_name();
  g->site_function = request.where.function_name();
  g->site_line = request.where.line();
  g->set_name(request.options.name);
  g->stack_setting = request.options.stack_setting;
  g->closure = small ? g->inline_closure : closure_on_stack(*g, request);
  // The external entry stays detached until commit or abandon, because the closure is written into the
  // runtime's memory.
  return Spawn{g, g->closure, entry.detach()};
}

void spawn_commit(Spawn spawn, void (*entry)(void* closure)) {
  G* g = spawn.g;
  prepare_goroutine(*g, entry);
  if (spawn.external) {
    const ExternalEntry external{ExternalEntry::Adopt{}};
    if (external.sched() == nullptr) return;  // the runtime has begun to end
    external.sched()->spawned_outside.fetch_add(1, std::memory_order_relaxed);
    inject(*external.sched(), g, Level::kNew);
    return;
  }
  const Enter rt;
  if (M* m = rt.m(); m != nullptr && m->p != nullptr) {
    ++m->p->spawned;
    put_next(*m->sched, *m->p, m, g);
    wake_if_it_pays(*m->sched, *m->p);
    return;
  }
  Sched& sched = *rt.m()->sched;
  sched.spawned_outside.fetch_add(1, std::memory_order_relaxed);
  inject(sched, g, Level::kNew);
}

void spawn_abandon(Spawn spawn) {
  const Enter rt;
  if (spawn.external) {
    const ExternalEntry external{ExternalEntry::Adopt{}};
    if (external.sched() != nullptr) external.sched()->gs.put(nullptr, spawn.g);
  } else {
    rt.m()->sched->gs.put(rt.p(), spawn.g);
  }
}

void spawn_failed(Spawned why) {
  if (why == Spawned::kTooLarge) fatal("stack_bytes is above 64 MiB, the largest stack of a goroutine");
  fatal("no memory for the stack of another goroutine");
}

}  // namespace tuza::rt
