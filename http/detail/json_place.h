// What a client is told of JSON that is well-formed, but no T, from the exceptions of nlohmann/json. Their texts name the library,
// and are taken apart:
//
//     "[json.exception.type_error.302] (/items/1/qty) type must be number, but is string"  ->  "items[1].qty: must be a number"
//
// The place in parentheses is there with JSON_DIAGNOSTICS only, and not for the value as a whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tuza::http::detail {

// "qty" and "[1].name" -> "qty[1].name"; the name is the client's.
inline std::string json_member(std::string_view name, std::string_view rest) {
  std::string place(name);
  for (char& c : place)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return place.append(rest.empty() || rest.front() == '[' ? "" : ".").append(rest);
}
inline std::string json_element(std::string_view index, std::string_view rest) {
  std::string place = "[" + std::string(index) + "]";
  return place.append(rest.empty() || rest.front() == '[' ? "" : ".").append(rest);
}

// "items[1].qty: must be a number"; where the place is not known, or too long to be of help, "a value must be a number".
inline std::string json_problem(const std::string& place, std::string_view otherwise,
                                std::string_view problem) {
  constexpr std::size_t kPlaceMax = 200;
  const bool known = !place.empty() && place.size() <= kPlaceMax;
  std::string text = known ? place + ":" : std::string(otherwise);
  return text.append(" ").append(problem);
}

// "/items/1/qty", a JSON pointer into `json`, as "items[1].qty"; empty if it points to nothing.
template <class Json>
std::string json_place(const Json& json, std::string_view pointer) try {
  std::string place;
  typename Json::json_pointer at{std::string(pointer)};
  for ((void)json.at(at); !at.empty(); at.pop_back()) {
    const bool in_array = json.at(at.parent_pointer()).is_array();
    place = in_array ? json_element(at.back(), place) : json_member(at.back(), place);
  }
  return place;
} catch (const typename Json::exception&) {
  return {};  // the exception was of a value that the program has made
}

// `id` and `what`: of the exception that `json` has caused when it was converted.
template <class Json>
std::string no_such_value(const Json& json, int id, std::string_view what) {
  constexpr int kWrongType = 302, kNotStructured = 304, kTooFew = 401, kMissing = 403;
  const std::string_view begin = id == kWrongType       ? "type must be "
                                 : id == kNotStructured ? "cannot use at() with "
                                 : id == kTooFew        ? "array index "
                                 : id == kMissing       ? "key '"
                                                        : "";
  constexpr std::string_view kUnknown = "a member is missing, or has another type than expected";
  // The last one: the place may have a name from the client that looks the same.
  const std::size_t at = what.rfind(begin);
  if (begin.empty() || at == what.npos) return std::string(kUnknown);
  const std::size_t open = what.find("] (");
  const bool has_place = open != what.npos && open + 5 <= at && what.substr(at - 2, 2) == ") ";
  const std::string place =
      has_place ? json_place(json, what.substr(open + 3, at - 2 - (open + 3))) : std::string();
  const std::string_view text = what.substr(at + begin.size());
  if (id == kMissing) {
    const std::string name(text.substr(0, text.rfind("' not found")));
    return place.empty() ? "the member \"" + name + "\" is missing"
                         : json_problem(json_member(place, name), "a member", "is missing");
  }
  if (id == kWrongType) {
    const std::string_view type = text.substr(0, text.find(','));
    const bool vowel = type.starts_with('a') || type.starts_with('o');
    return json_problem(place, "a value",
                        (type == "null" ? "must be "
                         : vowel        ? "must be an "
                                        : "must be a ") +
                            std::string(type));
  }
  if (place.empty()) return std::string(kUnknown);
  return json_problem(place, "a value",
                      id == kTooFew ? "has too few elements" : "has another type than expected");
}

}  // namespace tuza::http::detail
