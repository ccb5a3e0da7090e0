#include <tuza/framework/log/line_queue.h>

#include <pthread.h>
#include <signal.h>
#include <tuza/framework/log/sinks.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/base/thread_name.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace tuza::logging {
namespace {

constexpr std::chrono::milliseconds kBatchTime{20};
// The buffer of a batch keeps its memory up to this size.
constexpr std::size_t kKeptBatchBytes = 1 << 20;

}  // namespace

LineQueue::LineQueue(Output output, Form form, std::size_t lines_max,
                     std::atomic<std::uint64_t>& dropped_total)
    : output_(std::move(output)),
      form_(form),
      lines_max_(lines_max),
      bytes_max_(std::max(lines_max * kLineBytesMean, 2 * kLineBytesMax)),
      dropped_total_(dropped_total),
      patient_([this] { return rt::now_ns() < give_up_ns_.load(std::memory_order_relaxed); }) {}

Result<void> LineQueue::start() {
  // The thread handles no signals. If the file grows too large, write(2) fails instead of raising SIGXFSZ.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> result;
  try {
    std::thread([this] {
      rt::name_thread(pthread_self(), "tuza-log");
      work();
    }).detach();
  } catch (const std::system_error& error) {
    result = std::unexpected(rt::thread_refused("the log's thread", error.code().value()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

bool LineQueue::push(std::string_view line) {
  constexpr std::string_view kCut = "...\n";
  const bool cut = line.size() > kLineBytesMax;
  if (cut) line = line.substr(0, kLineBytesMax - kCut.size());
  bool wake = false;
  // No thread may wait for a suspended holder of mutex_ or, in glibc, of the condition variable's internal lock.
  const NoPreempt nobody_waits_for_a_suspended_one;
  {
    const LockGuard lock(mutex_);
    if (ended_ || lines_ >= lines_max_ || text_.size() + line.size() + kCut.size() > bytes_max_) {
      ++dropped_;
      dropped_total_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    const bool was_half_full = half_full();
    text_.append(line);
    if (cut) text_.append(kCut);
    ++lines_;
    wake = end_sleep() || (!was_half_full && half_full());
  }
  if (wake) wake_.notify_one();
  return true;
}

// True: the writing thread slept. From here on it counts as a thread that may wake a goroutine, because it is about to
// call sinks. (Not only when it has noticed the line: the goroutine that pushed it may be the last that runs.)
bool LineQueue::end_sleep() {
  if (!std::exchange(asleep_, false)) return false;
  rt::thread_becomes_foreign();
  return true;
}

void LineQueue::work() {
  std::string batch;
  bool last_words = false;
  RelockableGuard lock(mutex_);
  while (true) {
    if (lines_ == 0 && dropped_ == 0) {
      busy_ = false;
      written_.notify_all();
      if (stopping_) {
        if (lost_ == 0 || std::exchange(last_words, true)) break;
        lock.unlock();
        if (report(lost_)) lost_ = 0;
        lock.lock();
        continue;
      }
      asleep_ = true;
      rt::thread_becomes_known();
      mutex_.wait(wake_, [this]() TUZA_REQUIRES(mutex_) { return !asleep_ || stopping_; });
      end_sleep();
      continue;
    }
    busy_ = true;
    batch.clear();
    batch.swap(text_);
    const std::uint64_t lines = std::exchange(lines_, 0);
    const std::uint64_t dropped = std::exchange(dropped_, 0);
    lock.unlock();
    write(batch, lines, dropped);
    if (batch.capacity() > kKeptBatchBytes) std::string().swap(batch);
    lock.lock();
    if (lines_ == 0) {
      busy_ = false;
      written_.notify_all();
    }
    mutex_.wait_for(wake_, kBatchTime, [this]() TUZA_REQUIRES(mutex_) { return half_full() || stopping_; });
  }
  ended_ = true;
  written_.notify_all();
}

// Writes a batch, and reports losses in their order: `dropped` lines came after the batch, the lost_ ones before it.
void LineQueue::write(std::string& batch, std::uint64_t lines, std::uint64_t dropped) {
  if (lost_ > 0 && report(lost_)) lost_ = 0;
  const std::size_t written = output_.write(batch, patient_);
  pass_to_sinks(batch);
  if (written < batch.size()) {
    const auto rest = std::string_view(batch).substr(written);
    const auto refused = static_cast<std::uint64_t>(std::ranges::count(rest, '\n'));
    dropped_total_.fetch_add(std::min(refused, lines), std::memory_order_relaxed);
    lost_ += refused + dropped;
    return;
  }
  if (dropped > 0 && !report(dropped)) lost_ += dropped;
}

// Writes a line that reports dropped lines. False: the output did not accept it.
bool LineQueue::report(std::uint64_t dropped) {
  Line line(form_, wall_now_ns(), "warning");
  line.message("log: " + std::to_string(dropped) + (dropped == 1 ? " line" : " lines") + " dropped here");
  const std::string_view text = line.finish();
  if (output_.write(text, patient_) != text.size()) return false;
  pass_to_sinks(text);
  return true;
}

bool LineQueue::drain(std::chrono::milliseconds limit) {
  const LockGuard lock(mutex_);
  return mutex_.wait_for(written_, limit, [this]() TUZA_REQUIRES(mutex_) { return lines_ == 0 && !busy_; });
}

void LineQueue::stop(std::chrono::milliseconds limit) {
  const std::int64_t limit_ns = std::chrono::nanoseconds(limit).count();
  const LockGuard lock(mutex_);
  give_up_ns_.store(rt::now_ns() + limit_ns / 4 * 3, std::memory_order_relaxed);
  stopping_ = true;
  wake_.notify_one();
  mutex_.wait_for(written_, limit, [this]() TUZA_REQUIRES(mutex_) { return ended_; });
}

}  // namespace tuza::logging
