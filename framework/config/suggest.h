// Finds the known name that the user probably meant: "did you mean ...?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tuza::config {

// The edit distance: the number of characters to insert, delete or replace, or of neighbours to swap, that turns one
// text into the other.
std::size_t distance(std::string_view a, std::string_view b);

// The nearest of `known`; empty if none is near enough.
std::string_view nearest(std::string_view text, const std::vector<std::string_view>& known);

}  // namespace tuza::config
