// An intrusive list of goroutines: the wait queue of a primitive, or a batch of ready goroutines.
//
// Thread-unsafe: the list's owner guards it. A goroutine is on at most one list or queue at a time.
//
// The functions are inline and need the definition of G. Include <tuza/sched/rt/queue/g_list_inline.h> where
// they are called (the .cpp of a primitive), and this header where a list is only a member.
#pragma once

#include <cstdint>
#include <utility>

namespace tuza::rt {

struct G;

class GList {
 public:
  GList() = default;
  GList(GList&& other) noexcept
      : head_(std::exchange(other.head_, nullptr)),
        tail_(std::exchange(other.tail_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  GList& operator=(GList&& other) noexcept {
    head_ = std::exchange(other.head_, nullptr);
    tail_ = std::exchange(other.tail_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] G* front() const { return head_; }

  inline void push_back(G* g);
  inline void push_front(G* g);
  inline G* pop_front();                   // null when empty
  inline void splice_back(GList&& other);  // appends all of `other`
  inline bool remove(G* g);                // false if `g` is not on this list; linear

 private:
  G* head_ = nullptr;
  G* tail_ = nullptr;
  std::uint32_t size_ = 0;
};

}  // namespace tuza::rt
