#include <tuza/sched/rt/mutex_report.h>

#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/rt/backtrace.h>
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/print.h>

namespace tuza::rt {
namespace {

void print_lock(const HeldLock& held) {
  using Kind = HeldLock::Kind;
  Line line;
  switch (held.kind) {
    case Kind::kMutex: line << "mutex "; break;
    case Kind::kRecursiveMutex: line << "recursive mutex "; break;
    case Kind::kReadLock:
    case Kind::kWriteLock: line << "rwlock "; break;
  }
  line << held.lock << ", locked ";
  if (held.kind == Kind::kReadLock) line << "for reading ";
  if (held.kind == Kind::kWriteLock) line << "for writing ";
  if (held.pcs_known == 0) {
    line << "before this thread ran goroutines\n";
    return;
  }
  if (held.goroutine != 0) line << "by goroutine " << held.goroutine << " ";
  line << "here:\n";
  line.flush();
  print(held.pcs());
}

void print_locks() {
  const std::span<const HeldLock> known = held_locks();
  for (const HeldLock& held : known) print_lock(held);
  const int more = held_mutexes() - static_cast<int>(known.size());
  if (more > 0) Line() << "and " << more << " more, for whose places there was no room\n";
}

[[noreturn, gnu::cold]] void refuse_to_park_with_mutexes(const G& g) {
  Line text(Line::kNowhere);
  text << "goroutine " << g.id.get() << " (" << g.name() << ") parks while it holds " << held_mutexes()
       << " std::mutex (or another lock of libc); tuza::Mutex may be held across a park";
  fatal(text.text(), &print_locks);
}

}  // namespace

void check_no_mutex_held(const G& g) {
  if (held_mutexes() != 0 && g.locked_m == nullptr) [[unlikely]]
    refuse_to_park_with_mutexes(g);
}

}  // namespace tuza::rt
