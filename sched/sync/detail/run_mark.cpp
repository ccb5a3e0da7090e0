#include <tuza/sched/sync/detail/run_mark.h>

#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

std::uint64_t current_run() {
  const ExternalEntry entry;
  return entry.sched() == nullptr ? 0 : entry.sched()->run_number;
}

}  // namespace tuza::rt
