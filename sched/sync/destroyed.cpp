#include <tuza/sched/sync/destroyed.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/print.h>

namespace tuza::rt {

void destroyed_with_waiters(std::string_view what, const WaitQueue& queue) {
  constexpr int kNamed = 8;
  Line text(Line::kNowhere);
  text << what << " destroyed while goroutines wait for it: ";
  int count = 0;
  for (const Waiter* w = queue.front(); w != nullptr; w = w->next, ++count) {
    if (count >= kNamed) continue;
    if (count > 0) text << ", ";
    const G* g = w->wait->goroutine();
    if (g == nullptr) {
      text << "a thread";
      continue;
    }
    text << "goroutine " << g->id.get();
    const G::Name name = g->copy_name();
    if (name.text[0] != '\0') text << " (" << name.text << ")";
  }
  if (count > kNamed) text << ", and " << (count - kNamed) << " more";
  fatal(text.text());
}

}  // namespace tuza::rt
