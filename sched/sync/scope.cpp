#include <tuza/sched/sync/scope.h>

namespace tuza {

Scope::~Scope() noexcept(false) {
  // An exception thrown during stack unwinding would end the process.
  const bool unwinds =
      std::uncaught_exceptions() > exceptions_at_begin_ || (rt::in_goexit() && !in_goexit_at_begin_);
  if (unwinds) made_.cancel();
  if (!run_.ended()) running_.wait();
  if (!unwinds && thrown_ != nullptr) std::rethrow_exception(thrown_);
}

void Scope::join() {
  running_.wait();
  if (thrown_ == nullptr) return;
  std::exception_ptr thrown = std::exchange(thrown_, nullptr);
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::move(thrown));
}

void Scope::fail(std::exception_ptr thrown) {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  thrown_ = std::move(thrown);
  made_.cancel(Error(Errc::kCancelled, "Scope"));
}

}  // namespace tuza
