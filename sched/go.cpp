#include <tuza/sched/go.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/goroutine_main.h>
#include <tuza/sched/rt/idle.h>
#include <tuza/sched/rt/ready.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

std::uint64_t next_id(Sched& sched, P* p) {
  if (p == nullptr) return sched.gs.reserve_ids(1);
  if (p->id_next == p->id_end) {
    p->id_next = sched.gs.reserve_ids(GPool::kIdBlock);
    p->id_end = p->id_next + GPool::kIdBlock;
  }
  return p->id_next++;
}

}  // namespace

Spawn spawn_begin(const GoOptions& options, std::size_t bytes, std::size_t alignment,
                  const std::source_location& where) {
  const Enter rt;
  const ExternalEntry entry(rt.m());
  Sched* sched = entry.sched();
  if (sched == nullptr) fatal("go() outside tuza::run");
  const std::uint8_t stack_class =
      options.stack_bytes == 0 ? kDefaultStackClass : stack_class_for(options.stack_bytes);
  P* p = rt.p();
  G* g = sched->gs.take(p, stack_class);
  if (g == nullptr) return Spawn{nullptr, nullptr};
  g->id = next_id(*sched, p);
  g->parent_id = rt.g() == nullptr ? 0 : rt.g()->id;
  g->site_file = where.file_name();
  g->site_function = where.function_name();
  g->site_line = where.line();
  g->set_name(options.name);
  const std::uintptr_t room = g->stack.top - g->stack.low;
  if (bytes + alignment > room / 2) fatal("the function object of go() does not fit on the goroutine's stack");
  g->closure = reinterpret_cast<void*>((g->stack.top - bytes) & ~(std::uintptr_t{alignment} - 1));
  return Spawn{g, g->closure};
}

void spawn_commit(Spawn spawn, void (*entry)(void* closure)) {
  G* g = spawn.g;
  prepare_goroutine(*g, entry);
  const Enter rt;
  if (M* m = rt.m(); m != nullptr && m->p != nullptr) {
    m->p->spawned.add();
    put_next(*m->sched, *m->p, m, g);
    wake_if_it_pays(*m->sched, *m->p);
    return;
  }
  const ExternalEntry external;
  if (external.sched() == nullptr) return;  // the runtime ended in between
  external.sched()->spawned_outside.fetch_add(1, std::memory_order_relaxed);
  inject(*external.sched(), g);
}

void spawn_abandon(Spawn spawn) {
  const Enter rt;
  const ExternalEntry external(rt.m());
  if (external.sched() != nullptr) external.sched()->gs.put(rt.p(), spawn.g);
}

void spawn_failed() { fatal("no memory for the stack of another goroutine"); }

}  // namespace tuza::rt
