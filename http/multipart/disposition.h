// The header fields of a part, and the names in them. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

// The parameters behind the first ";" of a field, in order.
struct ParameterList {
  std::vector<std::pair<std::string, std::string>> items;

  // The value of the only parameter of that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
};
// Values are tokens or quoted strings, in which \" and \\ stand for " and \; another backslash is itself, since browsers
// do not escape it. nullopt if it is malformed, or a name occurs twice: readers would differ in which one counts.
[[nodiscard]] std::optional<ParameterList> parse_parameters(std::string_view field);

// Whether the lines of a part's head are header fields: a name, a colon, no folding, no control characters;
// none of those that mean something twice, since readers would differ in which one counts.
[[nodiscard]] bool is_part_head(std::string_view head);
[[nodiscard]] std::optional<std::string_view> part_field(std::string_view head, std::string_view name);

struct Disposition {
  std::string name;
  std::optional<std::string> file_name;
};
// Of Content-Disposition. %22, %0D and %0A are decoded, which is what browsers encode, and nothing else. `filename*` is
// ignored, as RFC 7578 4.2 says. nullopt unless it is form-data with a name.
[[nodiscard]] std::optional<Disposition> parse_disposition(std::string_view field);

// See Part::safe_file_name().
[[nodiscard]] std::string safe_file_name(std::string_view file_name);

}  // namespace tuza::http
