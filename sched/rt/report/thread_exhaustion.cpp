#include <tuza/sched/rt/report/thread_exhaustion.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/goroutine_record.h>
#include <tuza/sched/rt/report/sample.h>
#include <tuza/sched/rt/report/schedtrace.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace tuza::rt {
namespace {

constexpr std::size_t kKindsMax = 10;
// For the place of one goroutine, and of all: those that compute on a busy machine answer late.
constexpr std::int64_t kHolderPatienceNs = 100'000'000, kHoldersNs = 2'000'000'000;

// One goroutine of each kind; `others`: of the same kinds, and of more than there is room or time for.
std::vector<GoroutineRecord> holders(Sched& sched, std::size_t& others) {
  std::vector<GoroutineRecord> kinds;
  GoroutineRecord record;
  const std::int64_t until_ns = now_ns() + kHoldersNs;
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    record = {};
    if (!read_goroutine(sched.gs.at(i), false, record) || !record.runs_on_m()) continue;
    const bool full = kinds.size() == kKindsMax || now_ns() > until_ns;
    if (!full) take_sample(sched.ms[record.machine], record.id, kHolderPatienceNs, record.where);
    const auto is_known = [&] {
      return std::ranges::any_of(kinds, [&](const auto& kind) { return kind.same_kind(record); });
    };
    if (full || is_known()) {
      ++others;
    } else {
      kinds.push_back(record);
    }
  }
  return kinds;
}

void print_holders(Sched& sched) try {
  std::size_t others = 0;
  FrameNames names(sched.debug.all_frames);
  for (const GoroutineRecord& holder : holders(sched, others)) {
    std::string text;
    append_goroutine(text, names, holder, now_ns());
    print_lines(text);
  }
  if (others > 0) Line() << "\nand " << others << " more like these\n";
} catch (const std::bad_alloc&) {
  Line() << "(no memory to say which)\n";
}

}  // namespace

void report_thread_exhaustion(Sched& sched) {
  begin_last_report();
  Line() << "tuza: fatal: thread exhaustion: goroutines block all of " << sched.max_threads.load()
         << " threads (set_max_threads)\n";
  print_holders(sched);
  print_sched_state(sched);
  std::abort();
}

}  // namespace tuza::rt
