#include <tuza/sched/sync/context.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/context_node.h>

#include <algorithm>

namespace tuza {

using rt::CancelNode;
using rt::ContextNode;

// -- Handles.

Context::Context(const Context& other) : node_(other.node_) {
  if (node_ != nullptr) node_->ref();
}

Context::~Context() {
  if (node_ != nullptr) ContextNode::unref(node_);
}

CancelNode* Context::scope() const { return node_ == nullptr ? nullptr : node_->scope(); }

rt::Event* Context::event() const {
  CancelNode* const scope = this->scope();
  return scope == nullptr ? nullptr : &scope->event();
}

bool Context::done() const {
  const CancelNode* const scope = this->scope();
  return scope != nullptr && scope->ended();
}

Error Context::cause() const {
  const CancelNode* const scope = this->scope();
  const Error* const cause = scope == nullptr ? nullptr : scope->cause();
  return cause == nullptr ? Error(std::error_code{}, "context") : *cause;
}

Result<void> Context::check() const {
  if (!done()) return {};
  return std::unexpected(cause());
}

void Context::wait() const {
  rt::Event never;
  rt::Event* const end = event();
  (end == nullptr ? &never : end)->wait(WaitReason::kContext);
}

std::optional<Context::TimePoint> Context::deadline() const {
  const CancelNode* const scope = this->scope();
  if (scope == nullptr || scope->deadline_ns() == CancelNode::kNever) return std::nullopt;
  return TimePoint(std::chrono::nanoseconds(scope->deadline_ns()));
}

const void* Context::find(const void* key) const { return node_ == nullptr ? nullptr : node_->find(key); }

// -- Making contexts.

struct ContextMaker {
  static ContextNode* node(const Context& ctx) { return ctx.node_; }
  // Drops the reference of `ctx` without releasing it: the reference has a new owner.
  static void give_up(Context& ctx) { ctx.node_ = nullptr; }
  static CancelNode* scope(const Context& ctx) { return ctx.scope(); }
  static Context context(ContextNode* node) { return Context(node); }

  static CancellableContext cancellable(const Context& parent, std::int64_t deadline_ns,
                                        rt::ContextCause cause) {
    Context held(parent);  // released if there is no memory
    CancelNode* const above = scope(parent);
    const std::int64_t limit = above == nullptr ? CancelNode::kNever : above->deadline_ns();
    auto* const node = new CancelNode(held.node_, above, std::min(deadline_ns, limit));
    give_up(held);
    node->ref();
    CancellableContext result(context(node), Canceller(node));
    if (deadline_ns < limit && above_goes_on(above)) start_deadline(*node, std::move(cause));
    node->attach();
    return result;
  }

  static WhenDone at_end(const Context& ctx, MoveOnlyFunction<void()> function,
                         rt::ContextFunction::Runs runs) {
    auto* const made = new rt::ContextFunction(std::move(function), runs);
    WhenDone handle(ctx, made);
    CancelNode* const above = scope(ctx);
    if (above != nullptr && above->add(*made)) return handle;
    if (above != nullptr) made->start();
    rt::ContextFunction::unref(made);  // the list's reference
    return handle;
  }

 private:
  static bool above_goes_on(const CancelNode* above) { return above == nullptr || !above->ended(); }
  static void start_deadline(CancelNode& node, rt::ContextCause cause) {
    if (node.deadline_ns() <= rt::clock_now_ns()) {
      node.end(cause);
    } else {
      node.arm(std::move(cause));
    }
  }
};

namespace {

// Never freed: cancelling needs no memory, and works even while statics are destroyed.
const rt::ContextCause& cancelled() {
  static const auto* const kCause =
      new rt::ContextCause(std::make_shared<const Error>(Errc::kCancelled, "context"));
  return *kCause;
}

CancellableContext with_deadline_ns(const Context& parent, std::int64_t when_ns, Error cause) {
  {
    const rt::Enter rt;
    if (rt::ExternalEntry().sched() == nullptr) rt::fatal("a context with a deadline outside tuza::run");
  }
  return ContextMaker::cancellable(parent, when_ns, std::make_shared<const Error>(std::move(cause)));
}

}  // namespace

CancellableContext with_cancel(const Context& parent) {
  cancelled();  // creates the cause, so that cancelling will need no memory
  return ContextMaker::cancellable(parent, CancelNode::kNever, nullptr);
}

CancellableContext with_deadline(const Context& parent, rt::AnyTimePoint when, Error cause) {
  cancelled();
  return with_deadline_ns(parent, when.ns, std::move(cause));
}

CancellableContext with_timeout(const Context& parent, rt::AnyDuration timeout, Error cause) {
  cancelled();
  return with_deadline_ns(parent, rt::deadline_after(timeout.duration), std::move(cause));
}

Context without_cancel(const Context& parent) {
  Context held(parent);  // released if there is no memory
  auto* const node = new ContextNode(ContextMaker::node(held), nullptr);
  ContextMaker::give_up(held);
  return ContextMaker::context(node);
}

Context detail::with_erased_value(const Context& parent, const void* key, std::shared_ptr<const void> value) {
  Context held(parent);
  auto* const node =
      new rt::ValueNode(ContextMaker::node(held), ContextMaker::scope(held), key, std::move(value));
  ContextMaker::give_up(held);
  return ContextMaker::context(node);
}

// -- Canceller.

Canceller& Canceller::operator=(Canceller&& other) noexcept {
  Canceller old(std::move(*this));
  node_ = std::exchange(other.node_, nullptr);
  return *this;
}

Canceller::~Canceller() {
  (*this)();
  detach();
}

void Canceller::operator()() const {
  if (node_ != nullptr) node_->end(cancelled());
}

void Canceller::operator()(Error cause) const {
  if (node_ != nullptr && !node_->ended()) node_->end(std::make_shared<const Error>(std::move(cause)));
}

void Canceller::detach() { ContextNode::unref(std::exchange(node_, nullptr)); }

// -- when_done.

WhenDone when_done(const Context& ctx, MoveOnlyFunction<void()> function) {
  return ContextMaker::at_end(ctx, std::move(function), rt::ContextFunction::Runs::kInGoroutine);
}

WhenDone detail::at_end(const Context& ctx, MoveOnlyFunction<void()> function) {
  return ContextMaker::at_end(ctx, std::move(function), rt::ContextFunction::Runs::kOnTheSpot);
}

bool WhenDone::stop() {
  if (function_ == nullptr) return false;
  CancelNode* const scope = ctx_.scope();
  const bool stopped = scope == nullptr || scope->remove(*function_);
  if (stopped) function_->forget();
  if (stopped && scope != nullptr) rt::ContextFunction::unref(function_);  // the list's reference
  detach();
  return stopped;
}

void WhenDone::detach() {
  if (function_ == nullptr) return;
  rt::ContextFunction::unref(std::exchange(function_, nullptr));
  ctx_ = Context();
}

WhenDone::~WhenDone() { stop(); }

}  // namespace tuza
