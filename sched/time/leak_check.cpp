#include <tuza/sched/time/leak_check.h>

#include <tuza/sched/blocking.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace tuza::testing {
namespace {

template <class Visit>
void each_goroutine(Visit&& visit) {
  const rt::Sched& sched = *rt::current_m()->sched;  // the same for the whole run, on any M
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    const rt::G& g = sched.gs.at(i);
    if (g.status.load(std::memory_order_acquire) != rt::GStatus::kDead && !g.system) visit(g);
  }
}

std::string describe(const rt::G& g) {
  const rt::GStatus status = g.status.load(std::memory_order_acquire);
  const bool waits = status == rt::GStatus::kWaiting || status == rt::GStatus::kPinned;
  std::string line = "goroutine " + std::to_string(g.id.get()) + " [";
  line += waits ? tuza::name(g.wait_reason) : rt::name(status);
  line += "]";
  if (const auto name = g.copy_name(); name.text[0] != '\0') line += std::string(" ") + name.text;
  if (const char* file = g.site_file; file != nullptr) {
    line += std::string(", created in ") + g.site_function.get() + " at " + file + ":" +
            std::to_string(g.site_line.get());
  }
  return line + "\n";
}

}  // namespace

LeakCheck::LeakCheck() : exceptions_(std::uncaught_exceptions()) {
  if (rt::current_g() == nullptr) rt::fatal("a LeakCheck needs a goroutine: create it inside tuza::run");
  each_goroutine([this](const rt::G& g) { before_.push_back(g.id); });
  std::ranges::sort(before_);
}

std::string LeakCheck::report(rt::AnyDuration patience) const {
  constexpr int kYields = 100;
  reported_ = true;
  const std::int64_t deadline_ns = rt::time_after(rt::now_ns(), patience.duration);
  for (int i = 0;; ++i) {
    std::string left;
    const std::uint64_t own = goroutine_id();
    each_goroutine([&](const rt::G& g) {
      if (g.id != own && !std::ranges::binary_search(before_, g.id.get())) left += describe(g);
    });
    if (left.empty() || rt::now_ns() >= deadline_ns) return left;
    if (i < kYields) {
      yield();
    } else {
      blocking([] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    }
  }
}

LeakCheck::~LeakCheck() {
  if (reported_ || std::uncaught_exceptions() > exceptions_) return;
  const std::string left = report();
  if (left.empty()) return;
  rt::Line() << "goroutines were left behind:\n";
  for (std::size_t at = 0; at < left.size();) {
    const std::size_t end = left.find('\n', at) + 1;
    rt::Line() << left.substr(at, end - at).c_str();
    at = end;
  }
  rt::fatal("goroutines were left behind");
}

}  // namespace tuza::testing
