// Public header, part of <tuza/sync.h>.
//
// Pool: objects that are costly to make and needed for a moment, kept for the next one who needs one.
//
//     tuza::Pool<std::string> buffers([] { return std::string(4096, '\0'); });
//
//     auto buffer = buffers.get();          // one that was given back, or a new one
//     render(*buffer);                      // given back when `buffer` goes
//
// An object comes back as it was left: who needs it clean cleans it. Which one comes is not said; usually the
// one that this processor has given back last, whose memory is in the cache. Objects that have not been
// needed for a second are destroyed by and by; trim() destroys what lies there at once.
//
// Ordering: what was done with an object before it was given back is visible to who gets it next.
// Lifetime: the pool must outlive what was taken from it; destroying it inside tuza::run while objects are in
// use aborts, also if goroutines have them that an earlier run has left behind. Objects in the pool are destroyed
// with it. A static pool outlives such goroutines, whose objects go with the process.
//
// Thread-safe; goroutines and threads alike, also outside tuza::run. Does not park. Allocates only what it
// makes. Source: Go's sync.Pool; how memory comes back differs (sync/detail/pool_lists.h).
#pragma once

#include <tuza/sched/sync/detail/pool_lists.h>
#include <tuza/sched/sync/detail/run_mark.h>

#include <functional>
#include <utility>

namespace tuza {

namespace rt {
// Aborts if objects of a pool are in use that was made in the run that is on. What is missing in an older one may be with
// goroutines that were left behind.
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
  // An object that was taken. Moves; gives it back when it goes.
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

  // `make` makes an object where there is none; several may run at once. What it throws leaves get().
  explicit Pool(std::move_only_function<T() const> make = [] { return T(); }) : make_(std::move(make)) {
    run_.set();
  }
  ~Pool() { rt::check_pool_unused(lists_, run_); }

  Item get() {
    if (rt::PoolNode* const node = lists_.take(); node != nullptr) {
      return Item(lists_, static_cast<Node*>(node));
    }
    return make_item();
  }

  // Destroys what is not in use, but for one object at each processor.
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

  const std::move_only_function<T() const> make_;
  rt::RunMark run_;  // in which it was made
  rt::PoolLists lists_{[](rt::PoolNode* node) { delete static_cast<Node*>(node); }};
};

}  // namespace tuza
