#include <tuza/sched/sync/detail/context_node.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/sched.h>

#include <utility>

namespace tuza::rt {

// -- References.

void ContextNode::unref(ContextNode* node) {
  // acq_rel: the thread that frees the node comes after everything that others did with it.
  while (node != nullptr && node->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    ContextNode* const parent = node->parent_;
    delete node;
    node = parent;
  }
}

bool ContextNode::try_ref() {
  std::uint32_t refs = refs_.load(std::memory_order_relaxed);
  while (refs != 0) {
    if (refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

bool ContextNode::unref_unless_last() {
  std::uint32_t refs = refs_.load(std::memory_order_relaxed);
  while (refs != 1) {
    if (refs_.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

const void* ContextNode::find(const void* key) const {
  for (const ContextNode* node = this; node != nullptr; node = node->parent_) {
    if (const void* value = node->own_value(key); value != nullptr) return value;
  }
  return nullptr;
}

void ContextFunction::unref(ContextFunction* function) {
  if (function->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete function;
}

void ContextFunction::start() {
  auto function = std::exchange(function_, nullptr);
  if (run_.ended()) return;
  if (runs_ == Runs::kOnTheSpot) {
    function();
    return;
  }
  // A thread may end a context while the runtime ends: then nothing is left to run the function.
  auto call = [function = std::move(function)]() mutable { function(); };
  const Result<void> started = try_go({}, std::move(call));
  // Nobody else would run the function: it is one of those for which try_go() leaves memory. It has not been moved.
  if (!started && !started.error().is(Errc::kNotRunning))
    go(std::move(call));  // NOLINT(bugprone-use-after-move)
}

// -- The list.

CancelNode::~CancelNode() {
  if (above_ != nullptr) above_->remove(*this);
  while (first_ != nullptr) {  // no other thread can reach it any more
    auto* function = static_cast<ContextFunction*>(first_);
    remove_locked(*function);
    function->forget();
    ContextFunction::unref(function);
  }
}

bool CancelNode::add_locked(ContextLink& link, ContextCause* ended_with) {
  const Enter rt;  // a goroutine must not lose its P while it holds the lock
  const LockGuard lock(event_.lock());
  if (event_.happened()) {
    if (ended_with != nullptr) *ended_with = cause_;
    return false;
  }
  link.linked = true;
  link.next = first_;
  if (first_ != nullptr) first_->prev = &link;
  first_ = &link;
  return true;
}

void CancelNode::remove_locked(ContextLink& link) {
  (link.prev == nullptr ? first_ : link.prev->next) = link.next;
  if (link.next != nullptr) link.next->prev = link.prev;
  link.prev = link.next = nullptr;
  link.linked = false;
}

bool CancelNode::remove(ContextLink& link) {
  const Enter rt;
  const LockGuard lock(event_.lock());
  if (!link.linked) return false;
  remove_locked(link);
  return true;
}

bool CancelNode::add(ContextFunction& function) { return add_locked(function, nullptr); }

void CancelNode::attach() {
  if (above_ == nullptr) return;
  ContextCause cause;
  if (!above_->add_locked(*this, &cause)) end(cause);
}

// Returns the next child, with a reference to it; null: no more children. A child that has lost its last
// handle is about to leave the list by itself, and waits for the lock: the child exists as long as we hold
// the lock.
ContextLink* CancelNode::take_child() {
  const Enter rt;
  const LockGuard lock(event_.lock());
  while (first_ != nullptr) {
    ContextLink& link = *first_;
    remove_locked(link);
    if (!link.is_node || static_cast<CancelNode&>(link).try_ref()) return &link;
  }
  return nullptr;
}

// -- The end.

bool CancelNode::fire(const ContextCause& cause) {
  struct Why {
    CancelNode* node;
    const ContextCause* cause;
  } why{this, &cause};
  return event_.fire(
      [](void* argument) {
        const Why& w = *static_cast<Why*>(argument);
        w.node->cause_ = *w.cause;  // was null, so the assignment frees nothing
      },
      &why);
}

bool CancelNode::end_alone(const ContextCause& cause) {
  if (!fire(cause)) return false;
  disarm();
  if (above_ != nullptr) above_->remove(*this);
  return true;
}

bool CancelNode::end(const ContextCause& cause) {
  if (!end_alone(cause)) return false;
  end_below(cause);
  return true;
}

// `work` is a stack of ended nodes that may have children left; each except the first is held by a
// reference.
void CancelNode::end_below(const ContextCause& cause) {
  CancelNode* work = this;
  work_ = nullptr;
  while (work != nullptr) {
    ContextLink* const child = work->take_child();
    if (child == nullptr) {
      CancelNode* const finished = work;
      work = finished->work_;
      if (finished != this) unref(finished);
    } else if (!child->is_node) {
      auto* function = static_cast<ContextFunction*>(child);
      function->start();
      ContextFunction::unref(function);
    } else if (auto* node = static_cast<CancelNode*>(child); node->end_alone(cause)) {
      node->work_ = work;
      work = node;
    } else {
      unref(node);  // another thread ends it, and the nodes below it
    }
  }
}

// -- The deadline.

void CancelNode::arm(ContextCause cause) {
  deadline_cause_ = std::move(cause);
  timer_.function = &CancelNode::on_deadline;
  timer_.argument = this;
  ref();
  clock_arm(timer_, deadline_ns_);
}

// Called by the thread that has ended the node, unless that was the timer.
void CancelNode::disarm() {
  if (deadline_cause_ == nullptr) return;
  // A timer that could not be stopped has fired, or is about to, and releases its reference itself; or its
  // runtime has ended before it fired.
  const bool gone = clock_stop(timer_) || timer_disarmed(timer_);
  if (gone) unref(this);  // not the last reference: the caller has one
}

// Runs on the scheduler's stack.
void CancelNode::on_deadline(Timer& timer) {
  auto& node = *static_cast<CancelNode*>(timer.argument);
  const bool ended = node.fire(node.deadline_cause_);
  bool work_left = false;
  if (ended) {
    const LockGuard lock(node.event_.lock());
    work_left = node.first_ != nullptr;
  }
  if (!work_left && node.unref_unless_last()) return;
  go({.name = "context deadline"}, [self = &node, ended] {
    if (ended) self->end_below(self->deadline_cause_);
    unref(self);
  });
}

}  // namespace tuza::rt
