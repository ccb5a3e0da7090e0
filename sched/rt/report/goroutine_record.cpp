#include <tuza/sched/rt/report/goroutine_record.h>

#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/report/frame_name.h>
#include <tuza/sched/rt/report/syscall_name.h>
#include <tuza/sched/rt/report/walk.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

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
  record.since_ns = rt::waits(record.status) ? g.wait_since_ns.get() : 0;
  record.locked = g.locked_m != nullptr;
  record.name = g.copy_name();
  record.site_file = g.site_file;
  record.site_function = g.site_function;
  record.site_line = g.site_line.get();
}

void read_how_it_runs(const G& g, const M& m, GoroutineRecord& record) {
  record.machine = m.id;
  record.blocks = g.blocking.get() != 0;
  record.runs = how_it_runs(g, m);
  if ((m.taken.load(std::memory_order_acquire) & taken::kGone) != 0) {
    record.since_ns = m.gone_at_ns;
    record.cpu_ns = thread_cpu_ns(m.cpu_clock) - m.gone_cpu_ns;
    return;
  }
  const Sched& sched = *m.sched;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    const P& p = sched.p(i);
    if (p.m.load(std::memory_order_relaxed) == &m)
      record.since_ns = p.slice_start_ns.load(std::memory_order_relaxed);
  }
}

const char* why_stack_is_missing(Sample::Result result) {
  switch (result) {
    case Sample::Result::kNotAsked:
    case Sample::Result::kTaken: break;
    case Sample::Result::kNone: return "  no stack: it was inside the scheduler\n";
    case Sample::Result::kInKernel:
      return "  no more frames: its thread waits in the kernel and is left alone\n";
    case Sample::Result::kNoAnswer: return "  no stack: its thread did not get a core in time\n";
    case Sample::Result::kNoSignal: return "  no stack: there is no signal to ask its thread\n";
  }
  return "";
}

// The name of the call, because the C library's own may have no name that the program could find.
void append_call(std::string& out, std::int64_t call) {
  out += ", in the kernel";
  if (call < 0) return;
  const std::string_view name = syscall_name(call);
  out += ": " + (name.empty() ? "system call " + std::to_string(call) : std::string(name));
}

}  // namespace

const char* shown_status(const G& g) {
  const GStatus status = g.status.load(std::memory_order_relaxed);
  return status == GStatus::kRunning && g.blocking.get() != 0 ? "syscall" : name(status);
}

bool read_goroutine(G& g, bool with_stack, GoroutineRecord& record) {
  record.where.result = Sample::Result::kNotAsked;
  record.where.frame_count = record.where.activity.size = 0;
  record.where.call = -1;
  record.machine = -1;
  record.blocks = false;
  record.cpu_ns = 0;
  for (unsigned tries = 0;; ++tries) {
    record.status = g.status.load(std::memory_order_acquire);
    if (record.status == GStatus::kWaiting && g.pin()) {
      record.id = g.id.get();
      read_fields(g, record);
      record.where.activity.read(g);
      if (with_stack) record.where.frame_count = walk_pinned(g, record.where.frames);
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
    read_how_it_runs(g, *m, record);
  }
  // The record of a goroutine that has ended meanwhile may hold the next goroutine. (Processors that reorder
  // loads may still mix the two; the text is for human readers only.)
  return g.id.get() == record.id && g.status.load(std::memory_order_acquire) != GStatus::kDead;
}

namespace {

bool same_place(const Sample& a, const Sample& b) {
  return a.result == b.result && a.call == b.call && a.frame_count == b.frame_count &&
         std::equal(a.frames.begin(), a.frames.begin() + a.frame_count, b.frames.begin());
}

// "serving GET /search" of "serving GET /search?q=tuza".
std::string_view without_query(std::string_view activity) { return activity.substr(0, activity.find('?')); }

}  // namespace

bool GoroutineRecord::same_kind(const GoroutineRecord& other) const {
  const bool same = status == other.status && runs_on_m() == other.runs_on_m() &&
                    (!waits() || reason == other.reason) && locked == other.locked &&
                    site_file == other.site_file && site_line == other.site_line &&
                    std::strcmp(name.text, other.name.text) == 0;
  if (!same || !runs_on_m()) return same && same_place(where, other.where);
  return blocks == other.blocks &&
         without_query(where.activity.text()) == without_query(other.where.activity.text());
}

std::size_t GoroutineRecord::hash() const {
  std::size_t sum = std::size_t{site_line} * 31 + static_cast<std::size_t>(status);
  if (runs_on_m()) return sum;  // of these there are as many as threads at most
  for (std::size_t i = 0; i < where.frame_count; ++i) sum = (sum ^ where.frames[i]) * 0x9e37'79b9'7f4a'7c15;
  return sum;
}

void GoroutineRecord::drop_place() {
  where.result = Sample::Result::kNotAsked;
  where.frame_count = 0;
}

// A description is "NAME+OFFSET (FILE+0xPOSITION)", or "(FILE+0xPOSITION)" without a name, or as much of a long name as there
// was room for.
const FrameNames::Frame& FrameNames::of(std::uintptr_t pc) {
  const auto [found, is_new] = frames_.try_emplace(pc);
  Frame& frame = found->second;
  if (!is_new) return frame;
  Line line(Line::kNowhere);
  describe(line, pc);
  const std::string_view text = line.text();
  if (text.starts_with('(')) {
    frame.text = text;
    frame.shown = all_ || !is_cxx_runtime(text.substr(1));
    return frame;
  }
  frame.function = text.substr(0, text.rfind('+', text.rfind(" (")));
  if (!all_) frame.runs = goroutine_function(frame.function);
  frame.text =
      short_name(frame.runs.empty() ? frame.function : frame.runs).append(text.substr(frame.function.size()));
  frame.shown = all_ || !is_plumbing(frame.function);
  return frame;
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
  if (g.where.result == Sample::Result::kInKernel) append_call(out, g.where.call);
  if (g.locked) out += ", locked to thread";
}

void append_frames(std::string& out, FrameNames& names, std::span<const std::uintptr_t> frames) {
  const FrameNames::Frame* callee = nullptr;  // the last one that is shown
  const auto is_shown = [&callee](const FrameNames::Frame& frame) {
    const bool is_inlined = callee == nullptr || !callee->function.contains(frame.runs + "::operator()");
    return frame.shown || (!frame.runs.empty() && is_inlined);
  };
  const bool any = std::ranges::any_of(frames, [&](std::uintptr_t pc) { return is_shown(names.of(pc)); });
  std::size_t number = 0;
  for (const std::uintptr_t pc : frames) {
    const FrameNames::Frame& frame = names.of(pc);
    if (any && !is_shown(frame)) continue;
    callee = &frame;
    out += "  #" + std::to_string(number) + (number < 10 ? "  " : " ") + frame.text + '\n';
    ++number;
  }
}

void append_stack(std::string& out, FrameNames& names, const GoroutineRecord& g) {
  append_frames(out, names, std::span(g.where.frames).first(g.where.frame_count));
  if (g.where.frame_count == Sample::kFramesMax) out += "  ...\n";
  out += why_stack_is_missing(g.where.result);
  if (g.site_file == nullptr) return;
  out += "created ";
  if (g.parent_id != 0) out += "by goroutine " + std::to_string(g.parent_id) + ' ';
  out.append("in ").append(g.site_function).append("\n    at ").append(g.site_file);
  out += ':' + std::to_string(g.site_line) + '\n';
}

void append_goroutine(std::string& out, FrameNames& names, const GoroutineRecord& g, std::int64_t now) {
  out += "\ngoroutine " + std::to_string(g.id) + " [";
  append_state(out, g);
  if (g.has_age()) {
    out += ", ";
    append_duration(out, now - g.since_ns);
  }
  if (g.cpu_ns > 0) {
    out += ", ";
    append_duration(out, g.cpu_ns);
    out += " of CPU";
  }
  if (g.machine >= 0) out += ", M" + std::to_string(g.machine);
  out += ']';
  if (g.name.text[0] != '\0') out.append(" ").append(g.name.text);
  out += ":\n";
  if (g.where.activity.size > 0) out.append("  ").append(g.where.activity.text()) += '\n';
  append_stack(out, names, g);
}

}  // namespace tuza::rt
