#include <tuza/sched/rt/report/mutex_report.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/backtrace.h>

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

[[gnu::cold]] void refuse(const G& g, std::string_view does, std::string_view why_not) {
  if (!held_locks_are_certain()) return;
  Line text(Line::kNowhere);
  text << "goroutine " << g.id.get() << " (" << g.name() << ") " << does << " while it holds "
       << held_mutexes() << " std::mutex (or another lock of libc); " << why_not;
  fatal(text.text(), &print_locks);
}

}  // namespace

void mutex_report::check_park(const G& g) {
  if (held_mutexes() != 0 && g.locked_m == nullptr) [[unlikely]]
    refuse(g, "parks", "tuza::Mutex may be held across a park");
}

void mutex_report::check_end(const G& g) {
  if (held_mutexes() == 0 || g.locked_m != nullptr) return;
  for (const HeldLock& held : held_locks()) {
    if (held.goroutine == g.id.get()) return refuse(g, "ends", "no other goroutine may unlock it");
  }
}

}  // namespace tuza::rt
