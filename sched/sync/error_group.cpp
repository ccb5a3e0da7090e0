#include <tuza/sched/sync/error_group.h>

#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/check.h>

#include <new>
#include <string>

namespace tuza {
namespace {

std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "something thrown that is no std::exception";
  }
}

}  // namespace

ErrorGroup::~ErrorGroup() {
  if (members_.load(std::memory_order_acquire) != 0) made_.cancel();
  if (run_.ended()) return;
  running_.wait();
  if (is_cause_ && !known_.load(std::memory_order_relaxed) && std::uncaught_exceptions() <= exceptions_)
    log_failure();
}

void ErrorGroup::log_failure() const {
  static LogLimiter limiter;
  try {
    const std::string what = error_ ? error_->message() : message_of(thrown_);
    limiter.log(LogLevel::kWarning, "tuza: an ErrorGroup was destroyed without wait(), after: " + what);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a log line is not worth the process
  }
}

void ErrorGroup::set_limit(std::int64_t n) {
  if (members_.load(std::memory_order_acquire) != 0) {
    rt::fatal("ErrorGroup::set_limit() while goroutines of the group run");
  }
  limit_.reset();
  if (n >= 0) limit_.emplace(n);
}

void ErrorGroup::begun() {
  run_.set();
  members_.fetch_add(1, std::memory_order_relaxed);
  running_.add(1);
}

void ErrorGroup::ended() {
  if (limit_) limit_->release();
  members_.fetch_sub(1, std::memory_order_release);  // set_limit() may replace limit_ from now on
  running_.done();                                   // the group may be destroyed from now on
}

void ErrorGroup::fail(Error error) {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  is_cause_ = !made_.ctx().done();
  error_ = error;
  made_.cancel(std::move(error));
}

void ErrorGroup::fail(std::exception_ptr thrown) {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  is_cause_ = !made_.ctx().done();
  thrown_ = std::move(thrown);
  made_.cancel(Error(Errc::kCancelled, "ErrorGroup"));
}

Result<void> ErrorGroup::outcome() {
  made_.cancel();
  known_.store(true, std::memory_order_relaxed);
  if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  if (error_) return std::unexpected(*error_);
  return {};
}

Result<void> ErrorGroup::wait() {
  running_.wait();
  return outcome();
}

Result<void> ErrorGroup::wait(const Context& ctx) {
  if (Result<void> waited = running_.wait(ctx); !waited) return waited;
  return outcome();
}

}  // namespace tuza
