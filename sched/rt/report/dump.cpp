#include <tuza/sched/rt/report/dump.h>

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/backtrace.h>
#include <tuza/sched/rt/report/goroutine_record.h>
#include <tuza/sched/rt/sched.h>

#include <new>
#include <span>
#include <string>

namespace tuza::rt {
namespace {

void print_head(const G& g, std::int64_t now) {
  const GStatus status = g.status.load(std::memory_order_relaxed);
  Line line;
  line << "goroutine " << g.id.get() << " [";
  if (waits(status)) {
    line << tuza::name(g.wait_reason) << ", ";
    line.duration(now - g.wait_since_ns);
  } else {
    line << shown_status(g);
  }
  if (g.locked_m != nullptr) line << ", locked to thread";
  line << "]";
  if (const auto name = g.copy_name(); name.text[0] != '\0') line << " " << name.text;
  line << ":\n";
}

void print_stack(FrameNames& names, const Backtrace& trace) {
  std::string text;
  append_frames(text, names, std::span(trace.pcs).first(trace.size));
  print_lines(text);
}

}  // namespace

void print_program_frames(const Backtrace& trace) {
  const M* m = current_m();
  try {
    FrameNames names(m != nullptr && m->sched->debug.all_frames);
    print_stack(names, trace);
  } catch (const std::bad_alloc&) {
    print(trace);
  }
}

void print_creator(const G& g) {
  if (g.site_file == nullptr) return;
  Line line;
  line << "created ";
  if (g.parent_id != 0) line << "by goroutine " << g.parent_id.get() << " ";
  const char* function = g.site_function;
  const char* file = g.site_file;
  line << "in " << function << "\n    at " << file << ":" << g.site_line.get() << "\n";
}

void print_activity(const G& g) {
  ActivityText activity;
  activity.read(g);
  if (activity.size > 0) Line() << "  " << activity.text() << "\n";
}

void print_goroutine_line(const G& g) { print_head(g, g.wait_since_ns); }

namespace {

void print_goroutine(FrameNames& names, G& g) {
  print_head(g, now_ns());
  if (waits(g.status.load(std::memory_order_acquire))) print_stack(names, backtrace_of_parked(g));
  print_creator(g);
}

}  // namespace

void print_all_goroutines(Sched& sched) {
  FrameNames names(sched.debug.all_frames);
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    G& g = sched.gs.at(i);
    if (g.status.load(std::memory_order_acquire) == GStatus::kDead) continue;
    Line() << "\n";
    print_goroutine(names, g);
  }
}

}  // namespace tuza::rt
