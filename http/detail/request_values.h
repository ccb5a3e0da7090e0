// The values that middleware has attached to one request: a list, newest first, in memory of the request.
//
// A request has few values, so that a search is a few comparisons of addresses. An empty list owns nothing.
//
// Thread-unsafe, like the request.
#pragma once

#include <tuza/http/key.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace tuza::http::detail {

class RequestValues {
 private:
  struct Node {
    const void* key;
    Node* older;
    void (*end)(Node*);
  };
  template <class T>
  struct NodeOf : Node {
    T value;
  };

 public:
  RequestValues() = default;
  RequestValues(const RequestValues&) = delete;
  RequestValues& operator=(const RequestValues&) = delete;
  // In reverse order, as for the variables of a block: a value may refer to those set before it.
  ~RequestValues() {
    while (newest_ != nullptr) {
      Node* const node = std::exchange(newest_, newest_->older);
      node->end(node);
    }
  }

  template <class T>
  [[nodiscard]] T* find(const Key<T>& key) const noexcept {
    for (Node* node = newest_; node != nullptr; node = node->older) {
      if (node->key == &key) return &static_cast<NodeOf<T>*>(node)->value;
    }
    return nullptr;
  }

  // `allocate(bytes, alignment)` returns memory that outlives this object.
  template <class T, class Allocate>
  T& add(const Key<T>& key, T&& value, Allocate allocate) {
    void* const memory = allocate(sizeof(NodeOf<T>), alignof(NodeOf<T>));
    auto* const node = ::new (memory) NodeOf<T>{{&key, newest_, &end<T>}, std::forward<T>(value)};
    newest_ = node;
    return node->value;
  }

 private:
  template <class T>
  static void end(Node* node) {
    std::destroy_at(static_cast<NodeOf<T>*>(node));
  }

  Node* newest_ = nullptr;
};

}  // namespace tuza::http::detail
