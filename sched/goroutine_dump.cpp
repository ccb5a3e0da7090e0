#include <tuza/sched/goroutine_dump.h>

#include <tuza/sched/blocking.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/goroutine_record.h>
#include <tuza/sched/rt/report/sample.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/stats.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tuza {
namespace {

using rt::GoroutineRecord;

// Goroutines read per stay inside the runtime; they are formatted outside. About 50 us.
constexpr std::size_t kAtOnce = 64;
// Formatted goroutines between two yields: about 20 us. Yields are frequent because a P checks its timers,
// and polls, only before every 61st pick.
constexpr std::size_t kYieldInterval = 4;
constexpr std::size_t kPieceBytes = 32 << 10;
// How long a dump waits for the place of one running goroutine, and of all of them. A thread that has a core
// answers within microseconds; the others wait for one.
constexpr std::int64_t kSamplePatienceNs = 100'000'000;
constexpr std::int64_t kSamplesNs = 2'000'000'000;

// Asks running goroutines where they are.
class Sampler {
 public:
  // False: the run has ended.
  bool sample(GoroutineRecord& record, std::uint64_t run) {
    if (!record.runs_on_m() || record.id == goroutine_id()) return true;
    std::optional<BlockingCall> blocks;  // on a goroutine: the others need the P meanwhile
    if (rt::current_g() != nullptr) blocks.emplace();
    const rt::ExternalEntry entry;
    if (entry.sched() == nullptr || entry.sched()->run_number != run) return false;
    const std::int64_t began = rt::now_ns();
    rt::take_sample(entry.sched()->ms[record.machine], record.id, std::min(kSamplePatienceNs, left_ns_),
                    record.where);
    left_ns_ = std::max<std::int64_t>(left_ns_ - (rt::now_ns() - began), 0);
    return true;
  }

 private:
  std::int64_t left_ns_ = kSamplesNs;
};

// Reads all goroutines, a batch at a time, and passes each to `take`. Calls `pause` after each batch; a
// false result ends the loop.
template <class Take, class Pause>
void each_goroutine(bool stacks, Take&& take, Pause&& pause) {
  const auto batch = std::make_unique<std::array<GoroutineRecord, kAtOnce>>();
  const bool on_goroutine = rt::current_g() != nullptr;
  std::uint64_t run = 0;
  Sampler sampler;
  for (std::size_t at = 0, end = 1; at < end;) {
    std::size_t n = 0;
    {
      // Entered for one batch and no longer: the end of the run waits for the entry, and `take` and `pause`
      // are the caller's code.
      const rt::ExternalEntry entry;
      if (entry.sched() == nullptr) return;
      if (at == 0) run = entry.sched()->run_number;
      if (entry.sched()->run_number != run) return;
      const rt::Enter rt;
      end = entry.sched()->gs.count();
      for (std::size_t checked = 0; checked < kAtOnce && at < end; ++checked, ++at) {
        if (rt::read_goroutine(entry.sched()->gs.at(at), stacks, (*batch)[n])) ++n;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      // Without stacks as well: what it works on comes with its place.
      if (!sampler.sample((*batch)[i], run)) return;
      if (!stacks) (*batch)[i].drop_place();
      take((*batch)[i]);
      if (i % kYieldInterval == kYieldInterval - 1 && on_goroutine) yield();
    }
    if (!pause()) return;
    if (on_goroutine) yield();
  }
}

std::string headline() {
  const GoroutineCounts counts = count_goroutines();
  const std::size_t all = counts.running + counts.runnable + counts.waiting;
  return std::to_string(all) + (all == 1 ? " goroutine: " : " goroutines: ") +
         std::to_string(counts.running) + " running, " + std::to_string(counts.runnable) + " runnable, " +
         std::to_string(counts.waiting) + " waiting\n";
}

// TUZA_DEBUG=allframes, as the runtime has read it.
bool shows_all_frames() {
  const rt::ExternalEntry entry;
  return entry.sched() != nullptr && entry.sched()->debug.all_frames;
}

struct Group {
  GoroutineRecord shown;  // of those that run, the one that has for longest
  std::size_t count = 0;
  std::int64_t cpu_ns = 0;                      // of all
  std::int64_t oldest_ns = 0, youngest_ns = 0;  // their ages
  std::vector<std::uint64_t> ids = {};          // only the first few
};

class Groups {
 public:
  void add(const GoroutineRecord& record) {
    constexpr std::size_t kIdsMax = 8;
    std::vector<Group>& same_hash = groups_[record.hash()];
    auto found = std::ranges::find_if(same_hash, [&](const Group& g) { return g.shown.same_kind(record); });
    if (found == same_hash.end()) {
      same_hash.push_back(Group{.shown = record});
      found = same_hash.end() - 1;
    }
    ++found->count;
    found->cpu_ns += record.cpu_ns;
    if (record.has_age()) {
      if (found->oldest_ns == 0 || record.since_ns < found->oldest_ns) {
        found->oldest_ns = record.since_ns;
        if (record.runs_on_m()) found->shown = record;
      }
      found->youngest_ns = std::max(found->youngest_ns, record.since_ns);
    }
    if (found->ids.size() < kIdsMax) found->ids.push_back(record.id);
  }

  // Those that run precede all that wait, because they are what the others may wait for; then by count.
  [[nodiscard]] std::vector<const Group*> in_order() const {
    std::vector<const Group*> all;
    for (const auto& [hash, groups] : groups_) {
      for (const Group& group : groups) all.push_back(&group);
    }
    std::ranges::sort(all, [](const Group* a, const Group* b) {
      if (a->shown.runs_on_m() != b->shown.runs_on_m()) return a->shown.runs_on_m();
      return a->count != b->count ? a->count > b->count : a->shown.id < b->shown.id;
    });
    return all;
  }

 private:
  std::unordered_map<std::size_t, std::vector<Group>> groups_;
};

void append(std::string& out, rt::FrameNames& names, const Group& group, std::int64_t now) {
  if (group.count == 1) return append_goroutine(out, names, group.shown, now);
  out += '\n' + std::to_string(group.count) + " goroutines [";
  append_state(out, group.shown);
  if (group.oldest_ns != 0) {
    out += ", ";
    rt::append_duration(out, now - group.youngest_ns);
    out += " to ";
    rt::append_duration(out, now - group.oldest_ns);
  }
  if (group.cpu_ns > 0) {
    out += ", ";
    rt::append_duration(out, group.cpu_ns);
    out += " of CPU";
  }
  out += "]";
  if (group.shown.name.text[0] != '\0') out.append(" ").append(group.shown.name.text);
  out += ", numbers";
  for (const std::uint64_t id : group.ids) out += ' ' + std::to_string(id);
  out += group.count > group.ids.size() ? " ...:\n" : ":\n";
  if (group.shown.where.activity.size > 0)
    out.append("  ").append(group.shown.where.activity.text()).append(" (one of them)\n");
  append_stack(out, names, group.shown);
}

}  // namespace

void dump_goroutines(const std::function<bool(std::string_view)>& write, DumpOptions options) {
  rt::FrameNames names(options.frames || shows_all_frames());
  std::string text = headline();
  const auto flush = [&](std::size_t at_least) {
    if (text.size() < at_least) return true;
    const bool more = write(text);
    text.clear();
    return more;
  };
  if (!options.group) {
    bool more = true;
    each_goroutine(
        options.stacks, [&](const GoroutineRecord& g) { append_goroutine(text, names, g, rt::now_ns()); },
        [&] { return more = flush(kPieceBytes); });
    if (more) (void)flush(1);
    return;
  }
  Groups groups;
  each_goroutine(options.stacks, [&](const GoroutineRecord& g) { groups.add(g); }, [] { return true; });
  for (const Group* group : groups.in_order()) {
    append(text, names, *group, rt::now_ns());
    if (!flush(kPieceBytes)) return;
  }
  (void)flush(1);
}

std::string dump_goroutines(DumpOptions options) {
  std::string all;
  dump_goroutines(
      [&all](std::string_view text) {
        all += text;
        return true;
      },
      options);
  return all;
}

}  // namespace tuza
