// Finds the node of a segment below its parent: one hash table for all nodes of a tree.
//
// A table per node would cost a search two more cache lines at each segment. Open addressing with linear probing; a place is
// one word: the address of a node, and 16 bits of its hash. So the table stays in the cache as long as possible, and a node
// is read only if it is the right one, nearly always. The texts come from the program's patterns, not from clients: nobody
// can choose them so that they collide.
//
// Thread-compatible: searches are independent of each other.
#pragma once

#include <tuza/http/route/route_node.h>
#include <tuza/http/route/segment_text.h>
#include <tuza/sched/arch/tagged_address.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tuza::http {

class SegmentTable {
 public:
  // Null: there is none.
  [[nodiscard, gnu::always_inline]] RouteNode* find(const RouteNode& parent, const SegmentText& text) const {
    if (places_.empty()) return nullptr;
    const std::uint64_t hash = hash_of(parent, text);
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      const std::uint64_t place = places_[i];
      if (place == 0) return nullptr;
      if (rt::tag_of(place ^ hash) != 0) continue;
      RouteNode* const node = rt::address_of<RouteNode>(place);
      node->prefetch_route();  // likely the next to be read: beside the node, not after it
      if (node->parent == &parent && node->has_text(text)) return node;
    }
  }
  // Adds a node that is not there.
  void add(RouteNode& node);

 private:
  // Multiplies to 128 bits, and folds the halves: every bit of the result depends on all bits of both.
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  static std::uint64_t hash_of(const RouteNode& parent, const SegmentText& text) {
    constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15,
                            kSecond = 0xd6e8feb86659fd93;  // odd, with bits all over
    const std::uint64_t of_parent = reinterpret_cast<std::uintptr_t>(&parent) * kFirst;
    std::uint64_t hash = mix(text.low ^ of_parent, text.high ^ text.text.size() ^ kSecond);
    for (std::size_t done = SegmentText::kInWords; done < text.text.size(); done += SegmentText::kInWords) {
      const SegmentText next(text.text.substr(done));
      hash = mix(next.low ^ hash, next.high ^ kSecond);
    }
    return hash;
  }
  [[nodiscard]] std::size_t mask() const { return places_.size() - 1; }
  void put(RouteNode& node);

  std::vector<std::uint64_t> places_;  // 0: free. A power of two, at most two thirds of them in use
  std::size_t used_ = 0;
};

}  // namespace tuza::http
