#include <tuza/sched/rt/g.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/print.h>

#include <algorithm>
#include <cstring>

namespace tuza::rt {

const char* name(GStatus status) {
  switch (status) {
    case GStatus::kDead: return "dead";
    case GStatus::kRunnable: return "runnable";
    case GStatus::kRunning: return "running";
    case GStatus::kWaiting: return "waiting";
  }
  return "corrupt";
}

void G::set_name(std::string_view text) {
  const std::size_t n = std::min(text.size(), kNameBytes - 1);
  std::memcpy(name_text, text.data(), n);
  name_text[n] = '\0';
}

void G::illegal_transition(GStatus seen, GStatus from, GStatus to) const {
  Line() << "tuza: goroutine " << id << " is " << rt::name(seen) << " but should go from "
         << rt::name(from) << " to " << rt::name(to) << "\n";
  fatal("illegal goroutine status (woken twice, or resumed while running)");
}

}  // namespace tuza::rt
