#include <tuza/sched/rt/report/goroutine_record.h>

#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/report/walk.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace tuza::rt {
namespace {

const char* how_it_runs(const G& g, const M& m) {
  if (g.blocking.get() != 0) return shown_status(g);
  if ((m.taken.load(std::memory_order_relaxed) & taken::kGone) == 0) return "running";
  if (m.suspend.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(Suspend::kStopped)) {
    return "running without a P, suspended";
  }
  return "running without a P";
}

void read_fields(const G& g, GoroutineRecord& record) {
  record.parent_id = g.parent_id.get();
  record.reason = g.wait_reason.get();
  record.wait_since_ns = g.wait_since_ns.get();
  record.locked = g.locked_m != nullptr;
  record.name = g.copy_name();
  record.site_file = g.site_file;
  record.site_function = g.site_function;
  record.site_line = g.site_line.get();
}

}  // namespace

const char* shown_status(const G& g) {
  const GStatus status = g.status.load(std::memory_order_relaxed);
  return status == GStatus::kRunning && g.blocking.get() != 0 ? "syscall" : name(status);
}

bool read_goroutine(G& g, bool with_stack, GoroutineRecord& record) {
  record.frame_count = 0;
  record.machine = -1;
  for (unsigned tries = 0;; ++tries) {
    record.status = g.status.load(std::memory_order_acquire);
    if (record.status == GStatus::kWaiting && g.pin()) {
      record.id = g.id.get();
      read_fields(g, record);
      if (with_stack) record.frame_count = walk_pinned(g, record.frames);
      g.unpin();
      return true;
    }
    // Another thread has pinned the goroutine, or the goroutine was woken just now.
    if (!rt::waits(record.status)) break;
    G::wait_for_unpin(tries);
  }
  if (record.status == GStatus::kDead) return false;
  record.id = g.id.get();
  read_fields(g, record);
  const M* m = g.last_m;
  if (record.status == GStatus::kRunning && m != nullptr && m->current.follow() == &g) {
    record.machine = m->id;
    record.runs = how_it_runs(g, *m);
  }
  // The record of a goroutine that has ended meanwhile may hold the next goroutine. (Processors that reorder
  // loads may still mix the two; the text is for human readers only.)
  return g.id.get() == record.id && g.status.load(std::memory_order_acquire) != GStatus::kDead;
}

bool GoroutineRecord::same_kind(const GoroutineRecord& other) const {
  return status == other.status && (!waits() || reason == other.reason) && locked == other.locked &&
         frame_count == other.frame_count && site_file == other.site_file && site_line == other.site_line &&
         std::strcmp(name.text, other.name.text) == 0 &&
         std::equal(frames.begin(), frames.begin() + frame_count, other.frames.begin());
}

std::size_t GoroutineRecord::hash() const {
  std::size_t sum = site_line * 31 + static_cast<std::size_t>(status);
  for (std::size_t i = 0; i < frame_count; ++i) sum = (sum ^ frames[i]) * 0x9e37'79b9'7f4a'7c15;
  return sum;
}

const std::string& FrameNames::of(std::uintptr_t pc) {
  const auto [found, is_new] = names_.try_emplace(pc);
  if (is_new) {
    Line line(Line::kNowhere);
    describe(line, pc);
    found->second = line.text();
  }
  return found->second;
}

void append_duration(std::string& out, std::int64_t ns) {
  Line line(Line::kNowhere);
  line.duration(std::max<std::int64_t>(ns, 0));
  out += line.text();
}

void append_state(std::string& out, const GoroutineRecord& g) {
  if (g.waits()) {
    out += tuza::name(g.reason);
  } else if (g.machine >= 0) {
    out += g.runs;
  } else {
    out += rt::name(g.status);
  }
  if (g.locked) out += ", locked to thread";
}

void append_stack(std::string& out, FrameNames& names, const GoroutineRecord& g) {
  for (std::size_t i = 0; i < g.frame_count; ++i) {
    out += "  #" + std::to_string(i) + (i < 10 ? "  " : " ") + names.of(g.frames[i]) + '\n';
  }
  if (g.frame_count == GoroutineRecord::kFramesMax) out += "  ...\n";
  if (g.site_file == nullptr) return;
  out += "created ";
  if (g.parent_id != 0) out += "by goroutine " + std::to_string(g.parent_id) + ' ';
  out.append("in ").append(g.site_function).append("\n    at ").append(g.site_file);
  out += ':' + std::to_string(g.site_line) + '\n';
}

void append_goroutine(std::string& out, FrameNames& names, const GoroutineRecord& g, std::int64_t now) {
  out += "\ngoroutine " + std::to_string(g.id) + " [";
  append_state(out, g);
  if (g.waits()) {
    out += ", ";
    append_duration(out, now - g.wait_since_ns);
  }
  if (g.machine >= 0) out += ", M" + std::to_string(g.machine);
  out += ']';
  if (g.name.text[0] != '\0') out.append(" ").append(g.name.text);
  out += ":\n";
  append_stack(out, names, g);
}

}  // namespace tuza::rt
