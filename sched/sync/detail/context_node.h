// The tree behind Context: its nodes, how an end goes down, who frees what.
//
//     ValueNode     a key and a value                                 -- parent, by reference count
//     ContextNode   without_cancel: values of the parent, no scope
//     CancelNode    has an event that ends it, a cause, perhaps a timer, and a list of
//                     * CancelNodes below it, weakly: who has lost its last handle leaves the list, and
//                     * functions of after_func(), which the list owns together with their handle
//
// References go up (each node holds its parent), so a node whose last handle has gone can have no node below
// it, and the functions in its list will never run: they are dropped. (Some functions start no goroutine but
// are called on the spot, by whoever ends the context: detail::at_end(), for waits that Until cannot
// express.)
//
// The end. Whoever fires the event first ends the node: the cause is written under the event's lock before.
// That lock guards the list as well, so a child is either in the list when the event fires or sees it fired.
// Then children are taken off the list one at a time and ended in turn, without recursion: neither the depth
// nor the breadth of the tree is on a stack or under a lock.
//
// A deadline is a timer of the runtime. It holds a reference to its node, which stop() gives back if it was
// in time, else whoever fires it. Firing happens on the scheduler's stack, where nothing may be freed: the
// callback fires the event, and leaves to a goroutine what is left to do, if anything is (children, or the
// last reference).
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/block_pool.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <atomic>
#include <cstdint>
#include <functional>
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

  void ref() { refs_.fetch_add(1, std::memory_order_relaxed); }  // the caller has one already
  // One less; at the last the node goes, and with it what only it has held above. Not on the scheduler's
  // stack. Null is nothing.
  static void unref(ContextNode* node);

  // The nearest node that can end, this one or above; null: none.
  [[nodiscard]] CancelNode* scope() const { return scope_; }
  [[nodiscard]] const void* find(const void* key) const;

 protected:
  [[nodiscard]] virtual const void* own_value(const void*) const { return nullptr; }
  bool try_ref();            // false: the last has gone
  bool unref_unless_last();  // false: it is the last, and still there

 private:
  ContextNode* const parent_;  // a reference; null: background
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
  ContextFunction(std::move_only_function<void()> function, Runs runs)
      : ContextLink(false), function_(std::move(function)), runs_(runs) {
    run_.set();
  }
  // By whoever has taken it off its list. Drops the function if the runtime in which it was registered has ended: it
  // may refer to the stack of a goroutine that was left behind.
  void start();
  void forget() { function_ = nullptr; }
  static void unref(ContextFunction* function);

 private:
  std::move_only_function<void()> function_;
  const Runs runs_;
  RunMark run_;                         // in which it was registered
  std::atomic<std::uint32_t> refs_{2};  // the list's and the handle's
};

class CancelNode final : public ContextNode, public ContextLink {
 public:
  static constexpr std::int64_t kNever = Until::kNever;

  // Takes over the reference to `parent`. Not yet below its scope: attach().
  CancelNode(ContextNode* parent, CancelNode* above, std::int64_t deadline_ns)
      : ContextNode(parent, this), ContextLink(true), above_(above), deadline_ns_(deadline_ns) {}
  ~CancelNode() override;

  // Below its scope from now on; ends at once if that has ended.
  void attach();
  // Ends it at its deadline, with `cause`. At most once, before attach().
  void arm(ContextCause cause);
  // Ends it and all below. The caller has a reference. False: it had ended.
  bool end(const ContextCause& cause);

  // False if the node has ended: `function` is not taken.
  [[nodiscard]] bool add(ContextFunction& function);
  // True if it was in the list.
  bool remove(ContextLink& link);

  [[nodiscard]] Event& event() { return event_; }
  [[nodiscard]] bool ended() const { return event_.happened(); }
  // Constant once it has ended; null before.
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

  CancelNode* const above_;  // whose list it is in; kept by the parent's reference
  const std::int64_t deadline_ns_;
  Event event_;
  ContextCause cause_;            // written under the event's lock before it fires, constant then
  ContextLink* first_ = nullptr;  // guarded by the event's lock; nothing is added once it has fired
  CancelNode* work_ = nullptr;    // owner: who ended the node
  // -- The deadline.
  Timer timer_;
  ContextCause deadline_cause_;  // constant after arm(); null: not armed
};

}  // namespace tuza::rt
