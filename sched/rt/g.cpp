#include <tuza/sched/rt/g.h>

#include <time.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/print.h>

#include <algorithm>

namespace tuza::rt {

const char* name(GStatus status) {
  switch (status) {
    case GStatus::kDead: return "dead";
    case GStatus::kRunnable: return "runnable";
    case GStatus::kRunning: return "running";
    case GStatus::kWaiting:
    case GStatus::kPinned: return "waiting";
  }
  return "corrupt";
}

void G::set_name(std::string_view text) {
  const std::size_t n = std::min(text.size(), kNameBytes - 1);
  for (std::size_t i = 0; i < n; ++i) name_text[i] = text[i];
  name_text[n] = '\0';
}

G::Name G::copy_name() const {
  Name copy;
  for (std::size_t i = 0; i < kNameBytes; ++i) copy.text[i] = name_text[i];
  copy.text[kNameBytes - 1] = '\0';
  return copy;
}

void G::wait_for_unpin(unsigned tries) {
  constexpr unsigned kSpins = 100;
  if (tries < kSpins) return cpu_relax();
  constexpr struct timespec kShort{0, 50'000};
  sys::nanosleep(&kShort, nullptr);
}

void G::illegal_transition(GStatus seen, GStatus from, GStatus to) const {
  Line() << "tuza: goroutine " << id.get() << " is " << rt::name(seen) << " but should go from "
         << rt::name(from) << " to " << rt::name(to) << "\n";
  fatal("illegal goroutine status (woken twice, or resumed while running)");
}

}  // namespace tuza::rt
