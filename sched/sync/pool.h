// Public header, part of <tuza/sync.h>.
//
// Pool: keeps objects that are expensive to make and needed only briefly, for reuse.
//
//     tuza::Pool<std::string> buffers([] { return std::string(4096, '\0'); });
//
//     auto buffer = buffers.get();          // one that was given back, or a new one
//     render(*buffer);                      // given back when `buffer` goes
//
// An object comes back in the state in which it was left: a caller that needs a clean object must clean it.
// get() may return any object of the pool, usually the one that this processor gave back last, whose memory
// is in the cache. Objects that have not been needed for a second are destroyed gradually; trim() destroys
// the unused objects at once.
//
// Ordering: everything done with an object before it was given back is visible to the caller that gets it
// next.
// Lifetime: the pool must outlive the objects taken from it. Destroying the pool inside tuza::run while
// objects are in use aborts, also if goroutines have them that an earlier run has left behind. Objects in
// the pool are destroyed with it. A static pool outlives such goroutines; their objects live until the
// process ends.
//
// Thread-safe; goroutines and threads alike, also outside tuza::run. Does not park. Allocates only the
// objects it makes. Source: Go's sync.Pool; memory is returned differently (sync/detail/pool_lists.h).
#pragma once

#include <tuza/sched/detail/language.h>  // first
#include <tuza/sched/detail/move_only_function.h>

#include <tuza/sched/sync/detail/pool_lists.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <utility>

namespace tuza {

namespace rt {
// Aborts if objects of a pool are in use and the pool was made in the current run. Objects missing from an
// older pool may be with goroutines that were left behind.
void check_pool_unused(const PoolLists& lists, const RunMark& run);
}  // namespace rt

template <class T>
class Pool {
  struct Node : rt::PoolNode {
    template <class Make>
    explicit Node(Make& make) : value(make()) {}
    T value;
  };

 public:
  // An object taken from the pool. Movable; the destructor gives the object back.
  class [[nodiscard]] Item {
   public:
    Item(Item&& other) noexcept : lists_(other.lists_), node_(std::exchange(other.node_, nullptr)) {}
    Item& operator=(Item&& other) noexcept {
      std::swap(lists_, other.lists_);
      std::swap(node_, other.node_);
      return *this;
    }
    ~Item() {
      if (node_ != nullptr) lists_->put(node_);
    }
    T& operator*() const { return node_->value; }
    T* operator->() const { return &node_->value; }

   private:
    friend Pool;
    Item(rt::PoolLists& lists, Node* node) : lists_(&lists), node_(node) {}
    rt::PoolLists* lists_;
    Node* node_;
  };

  // `make` makes an object when the pool has none; several calls may run at once. Its exceptions propagate
  // out of get().
  explicit Pool(MoveOnlyFunction<T() const> make = [] { return T(); }) : make_(std::move(make)) {
    run_.set();
  }
  ~Pool() { rt::check_pool_unused(lists_, run_); }

  Item get() {
    if (rt::PoolNode* const node = lists_.take(); node != nullptr) {
      return Item(lists_, static_cast<Node*>(node));
    }
    return make_item();
  }

  // Destroys the objects that are not in use, except one per processor.
  void trim() { lists_.trim(); }

 private:
  Item make_item() {
    struct Undo {
      rt::PoolLists* lists;
      ~Undo() {
        if (lists != nullptr) lists->not_taken();
      }
    } undo{&lists_};
    Item item(lists_, new Node(make_));
    undo.lists = nullptr;
    return item;
  }

  const MoveOnlyFunction<T() const> make_;
  rt::RunMark run_;  // the run in which the pool was made
  rt::PoolLists lists_{[](rt::PoolNode* node) { delete static_cast<Node*>(node); }};
};

}  // namespace tuza
