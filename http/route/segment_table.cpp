#include <tuza/http/route/segment_table.h>

#include <algorithm>
#include <utility>

namespace tuza::http {

void SegmentTable::put(Place place) {
  std::size_t i = place.hash & mask();
  while (places_[i].node != nullptr) i = (i + 1) & mask();
  places_[i] = place;
}

void SegmentTable::add(RouteNode& node, std::string_view text) {
  constexpr std::size_t kPlacesMin = 16;
  if (2 * (used_ + 1) > places_.size()) {
    std::vector<Place> larger(std::max(kPlacesMin, 2 * places_.size()));
    std::swap(places_, larger);
    for (const Place& place : larger) {
      if (place.node != nullptr) put(place);
    }
  }
  put({hash_of(*node.parent, text), &node});
  ++used_;
}

}  // namespace tuza::http
