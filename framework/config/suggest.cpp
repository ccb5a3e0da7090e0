#include <tuza/framework/config/suggest.h>

#include <algorithm>

namespace tuza::config {

std::size_t distance(std::string_view a, std::string_view b) {
  // Three rows of the table for optimal string alignment: the current one and the two above it.
  std::vector<std::size_t> row(b.size() + 1), above(b.size() + 1), above_that(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    above_that.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], above_that[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view text, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 4) + 1;
  for (const std::string_view candidate : known) {
    std::size_t d = distance(text, candidate);
    // "listen" for "http.listen": the user forgot the section, or gave another one.
    const std::size_t dot = candidate.rfind('.');
    if (dot != std::string_view::npos && text.substr(text.rfind('.') + 1) == candidate.substr(dot + 1)) {
      d = std::min<std::size_t>(d, 1);
    }
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

}  // namespace tuza::config
