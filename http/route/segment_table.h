// Finds the node of a segment below its parent: one hash table for all nodes of a tree.
//
// A table per node would cost a search two more cache lines at each segment. Open addressing with linear probing; a place
// has the whole hash, so that the node itself is read only if it is the right one, nearly always. The texts come from the
// program's patterns, not from clients: nobody can choose them so that they collide.
//
// Thread-compatible: searches are independent of each other.
#pragma once

#include <tuza/http/route/route_node.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tuza::http {

class SegmentTable {
 public:
  // Null: there is none.
  [[nodiscard]] RouteNode* find(const RouteNode& parent, std::string_view text) const {
    if (places_.empty()) return nullptr;
    const std::uint64_t hash = hash_of(parent, text);
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      const Place& place = places_[i];
      if (place.node == nullptr) return nullptr;
      if (place.hash == hash && place.node->parent == &parent && place.node->has_text(text))
        return place.node;
    }
  }
  // Adds a node that is not there.
  void add(RouteNode& node, std::string_view text);

 private:
  struct Place {
    std::uint64_t hash = 0;
    RouteNode* node = nullptr;
  };

  // Multiplies to 128 bits, and folds the halves: every bit of the result depends on all bits of both.
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  template <class Word>
  static std::uint64_t load(const char* from) {
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
  }
  static std::uint64_t hash_of(const RouteNode& parent, std::string_view text) {
    constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15,
                            kSecond = 0xd6e8feb86659fd93;  // odd, with bits all over
    std::uint64_t hash = mix(reinterpret_cast<std::uintptr_t>(&parent) ^ kFirst, text.size() ^ kSecond);
    const char* from = text.data();
    std::size_t left = text.size();
    for (; left > 16; from += 16, left -= 16) {
      hash = mix(load<std::uint64_t>(from) ^ hash, load<std::uint64_t>(from + 8) ^ kSecond);
    }
    // The ends may overlap.
    std::uint64_t a = 0, b = 0;
    if (left >= 8) {
      a = load<std::uint64_t>(from);
      b = load<std::uint64_t>(from + left - 8);
    } else if (left >= 4) {
      a = load<std::uint32_t>(from);
      b = load<std::uint32_t>(from + left - 4);
    } else if (left > 0) {
      a = load<std::uint8_t>(from);
      b = load<std::uint8_t>(from + left / 2) << 8 | load<std::uint8_t>(from + left - 1);
    }
    return mix(a ^ hash, b ^ kSecond);
  }
  [[nodiscard]] std::size_t mask() const { return places_.size() - 1; }
  void put(Place place);

  std::vector<Place> places_;  // a power of two, at most half of them in use
  std::size_t used_ = 0;
};

}  // namespace tuza::http
