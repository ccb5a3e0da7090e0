// "Did you mean ...?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuza::config {

// How many letters have to be put in, taken out, or changed, or neighbours exchanged, to make one of the
// other.
std::size_t distance(std::string_view a, std::string_view b);

// The nearest of `known`; empty if none is near.
std::string_view nearest(std::string_view text, const std::vector<std::string_view>& known);

}  // namespace tuza::config
