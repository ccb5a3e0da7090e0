// The inline functions of GList (sched/rt/queue/g_list.h).
#pragma once

#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/queue/g_list.h>

#include <utility>

namespace tuza::rt {

inline void GList::push_back(G* g) {
  g->link = nullptr;
  (tail_ != nullptr ? tail_->link : head_) = g;
  tail_ = g;
  ++size_;
}

inline void GList::push_front(G* g) {
  g->link = head_;
  if (head_ == nullptr) tail_ = g;
  head_ = g;
  ++size_;
}

inline G* GList::pop_front() {
  G* g = head_;
  if (g == nullptr) return nullptr;
  head_ = g->link;
  if (head_ == nullptr) tail_ = nullptr;
  g->link = nullptr;
  --size_;
  return g;
}

inline void GList::splice_back(GList&& other) {
  if (other.empty()) return;
  (tail_ != nullptr ? tail_->link : head_) = other.head_;
  tail_ = std::exchange(other.tail_, nullptr);
  size_ += std::exchange(other.size_, 0);
  other.head_ = nullptr;
}

inline bool GList::remove(G* g) {
  G* before = nullptr;
  for (G* at = head_; at != nullptr; before = at, at = at->link) {
    if (at != g) continue;
    (before != nullptr ? before->link : head_) = g->link;
    if (tail_ == g) tail_ = before;
    g->link = nullptr;
    --size_;
    return true;
  }
  return false;
}

}  // namespace tuza::rt
