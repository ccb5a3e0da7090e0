// The tree behind Context: its nodes, how an end propagates downwards, and which node is freed when.
//
//     ValueNode     a key and a value                                 -- parent, by reference count
//     ContextNode   without_cancel: values of the parent, no scope
//     CancelNode    has an event that ends it, a cause, perhaps a timer, and a list of
//                     * the CancelNodes below it, weakly: a node that loses its last handle leaves the list,
//                     * functions of when_done(), which the list owns together with their handle
//
// References point upwards (each node holds its parent). A node whose last handle is gone can therefore have
// no node below it, and the functions in its list will never run: they are dropped. (Some functions start no
// goroutine: the thread that ends the context calls them directly. See detail::at_end(), for waits that
// Until cannot express.)
//
// The end. The thread that fires the event first ends the node; it writes the cause under the event's lock
// before. The same lock guards the list, so a child either is in the list when the event fires or sees that
// it has fired. Then the children are taken off the list one at a time and ended in turn, without recursion:
// neither the depth nor the breadth of the tree is on a stack or under a lock.
//
// A deadline is a timer of the runtime. The timer holds a reference to its node; stop() releases the
// reference if it was in time, otherwise the firing does. The timer fires on the scheduler's stack, where
// nothing may be freed. The callback therefore only fires the event, and starts a goroutine for remaining
// work, if there is any (children, or the last reference).
#pragma once

#include <tuza/sched/detail/move_only_function.h>
#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/block_pool.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tuza::rt {

class CancelNode;
using ContextCause = std::shared_ptr<const Error>;

class ContextNode : public FromBlockPool {
 public:
  ContextNode(ContextNode* parent, CancelNode* scope) : parent_(parent), scope_(scope) {}
  ContextNode(const ContextNode&) = delete;
  ContextNode& operator=(const ContextNode&) = delete;
  virtual ~ContextNode() = default;

  void ref() { refs_.fetch_add(1, std::memory_order_relaxed); }  // the caller already has a reference
  // Releases a reference. The last release frees the node, and all ancestors that only this node has held.
  // Not on the scheduler's stack. Null is ignored.
  static void unref(ContextNode* node);

  // The nearest node that can end, this node or an ancestor; null: none.
  [[nodiscard]] CancelNode* scope() const { return scope_; }
  [[nodiscard]] const void* find(const void* key) const;

 protected:
  [[nodiscard]] virtual const void* own_value(const void*) const { return nullptr; }
  bool try_ref();            // false: the last reference is gone
  bool unref_unless_last();  // false: it is the last reference, which stays

 private:
  ContextNode* const parent_;  // holds a reference; null: background
  CancelNode* const scope_;
  std::atomic<std::uint32_t> refs_{1};
};

class ValueNode final : public ContextNode {
 public:
  ValueNode(ContextNode* parent, CancelNode* scope, const void* key, std::shared_ptr<const void> value)
      : ContextNode(parent, scope), key_(key), value_(std::move(value)) {}

 private:
  [[nodiscard]] const void* own_value(const void* key) const override {
    return key == key_ ? value_.get() : nullptr;
  }
  const void* const key_;
  const std::shared_ptr<const void> value_;
};

// A place in the list of a CancelNode; guarded by the lock of that node's event.
struct ContextLink {
  explicit ContextLink(bool node) : is_node(node) {}
  ContextLink* prev = nullptr;
  ContextLink* next = nullptr;
  bool linked = false;
  const bool is_node;  // a CancelNode; else a ContextFunction
};

class ContextFunction final : public ContextLink, public FromBlockPool {
 public:
  enum class Runs : bool { kInGoroutine, kOnTheSpot };
  ContextFunction(MoveOnlyFunction<void()> function, Runs runs)
      : ContextLink(false), function_(std::move(function)), runs_(runs) {
    run_.set();
  }
  // Called by the thread that has taken the function off its list. Drops the function if the runtime in
  // which it was registered has ended: the function may refer to the stack of a goroutine that was left
  // behind.
  void start();
  void forget() { function_ = nullptr; }
  static void unref(ContextFunction* function);

 private:
  MoveOnlyFunction<void()> function_;
  const Runs runs_;
  RunMark run_;                         // the run in which it was registered
  std::atomic<std::uint32_t> refs_{2};  // the list's and the handle's
};

class CancelNode final : public ContextNode, public ContextLink {
 public:
  static constexpr std::int64_t kNever = Until::kNever;

  // Takes over the reference to `parent`. The node is not yet in the list of its scope: see attach().
  CancelNode(ContextNode* parent, CancelNode* above, std::int64_t deadline_ns)
      : ContextNode(parent, this), ContextLink(true), above_(above), deadline_ns_(deadline_ns) {}
  ~CancelNode() override;

  // Enters the list of the scope; ends at once if the scope has ended.
  void attach();
  // Ends the node at its deadline, with `cause`. Call at most once, before attach().
  void arm(ContextCause cause);
  // Ends the node and all nodes below it. The caller has a reference. False: the node had already ended.
  bool end(const ContextCause& cause);

  // False if the node has ended: `function` is not added then.
  [[nodiscard]] bool add(ContextFunction& function);
  // True if `link` was in the list.
  bool remove(ContextLink& link);

  [[nodiscard]] Event& event() { return event_; }
  [[nodiscard]] bool ended() const { return event_.happened(); }
  // Constant after the end; null before.
  [[nodiscard]] const Error* cause() const { return ended() ? cause_.get() : nullptr; }
  [[nodiscard]] std::int64_t deadline_ns() const { return deadline_ns_; }

 private:
  bool add_locked(ContextLink& link, ContextCause* ended_with);
  void remove_locked(ContextLink& link);
  ContextLink* take_child();
  bool end_alone(const ContextCause& cause);
  bool fire(const ContextCause& cause);
  void end_below(const ContextCause& cause);
  void disarm();
  static void on_deadline(Timer& timer);

  CancelNode* const above_;  // the node whose list this one is in; the parent's reference keeps it alive
  const std::int64_t deadline_ns_;
  Event event_;
  ContextCause cause_;  // written under the event's lock before it fires, then constant
  ContextLink* first_ TUZA_GUARDED_BY(event_.lock()) = nullptr;  // nothing is added once it has fired
  CancelNode* work_ = nullptr;                                   // owner: the thread that ended the node
  // -- The deadline.
  Timer timer_;
  ContextCause deadline_cause_;  // constant after arm(); null: not armed
};

}  // namespace tuza::rt
