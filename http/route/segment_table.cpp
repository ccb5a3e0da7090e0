#include <tuza/http/route/segment_table.h>

#include <algorithm>
#include <utility>

namespace tuza::http {

void SegmentTable::put(RouteNode& node) {
  const std::uint64_t hash = hash_of(*node.parent, SegmentText(node.text()));
  std::size_t i = hash & mask();
  while (places_[i] != 0) i = (i + 1) & mask();
  places_[i] = rt::tagged(&node, rt::tag_of(hash));
}

void SegmentTable::add(RouteNode& node) {
  constexpr std::size_t kPlacesMin = 16;
  if (3 * (used_ + 1) > 2 * places_.size()) {
    std::vector<std::uint64_t> larger(std::max(kPlacesMin, 2 * places_.size()));
    std::swap(places_, larger);
    for (const std::uint64_t place : larger) {
      if (place != 0) put(*rt::address_of<RouteNode>(place));
    }
  }
  put(node);
  ++used_;
}

}  // namespace tuza::http
