// Public header.
//
// Needs nlohmann/json (Debian: nlohmann-json3-dev), which Tuza itself does not use; <tuza/http.h> does not include it.
//
// JSON of requests and responses by nlohmann/json, for all that it can convert: its own values, numbers, containers, and
// types with NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE or to_json and from_json.
//
//     struct Note { std::string title, body; };
//     NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Note, title, body)
//
//     router.handle("POST /notes", [](Request& req, ResponseWriter& res) { res.json(201, store(req.json<Note>())); });
//
// Of two members with the same name the last one counts. Text that is not UTF-8 is malformed in a request; in a response
// its bytes become U+FFFD. A number that its member cannot hold is an error: one that is too large, is negative, or has a fraction.
// A boolean in place of a number is an error, too. A JsonCodec of your own for a type takes precedence over this one.
//
// The client is told which member is wrong, "items[1].qty: must be a number", if the program defines JSON_DIAGNOSTICS=1, in all of
// its files alike: it makes the library's values another type. Otherwise only for numbers, and the name of a missing member.
#pragma once

#include <tuza/http/detail/json_place.h>
#include <tuza/http/json_codec.h>

#include <nlohmann/json.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

namespace detail {

// The library converts numbers as C++ does. `taken` is what the member holds now: `given` modulo 2^8 to 2^64, or without its
// fraction, or the number of a boolean.
template <class Json>
bool is_cut_off(const Json& given, const Json& taken) {
  if (given.is_boolean()) return taken.is_number();
  if (!given.is_number() || !taken.is_number_integer()) return false;
  const bool below = !taken.is_number_unsigned() && taken.template get<std::int64_t>() < 0;
  if (given.is_number_float()) {
    const double number = given.template get<double>();
    if (!(number > -0x1p63 && number < 0x1p63)) return true;
    if (given == taken) return false;
    const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
    return ((whole ^ taken.template get<std::uint64_t>()) & 0xff) == 0 ||
           taken == std::numeric_limits<std::int32_t>::min();
  }
  const bool given_below = !given.is_number_unsigned() && given.template get<std::int64_t>() < 0;
  if (given == taken && given_below == below) return false;
  return ((given.template get<std::uint64_t>() ^ taken.template get<std::uint64_t>()) & 0xff) == 0;
}

// The place of such a number: "items[1].qty"; empty for the whole value, nullopt if there is none. Members that a type converts
// by itself, from texts for instance, are its own matter.
template <class Json>
std::optional<std::string> lost_number(const Json& given, const Json& taken) {
  if (given.is_object() && taken.is_object()) {
    for (const auto& [name, value] : taken.items()) {
      const auto found = given.find(name);
      if (found == given.end()) continue;
      if (const auto place = lost_number(*found, value)) return json_member(name, *place);
    }
    return std::nullopt;
  }
  if (given.is_array() && taken.is_array() && given.size() == taken.size()) {
    for (std::size_t i = 0; i < given.size(); ++i)
      if (const auto place = lost_number(given[i], taken[i])) return json_element(std::to_string(i), *place);
    return std::nullopt;
  }
  return is_cut_off(given, taken) ? std::optional<std::string>("") : std::nullopt;
}

}  // namespace detail

template <class T>
  requires std::same_as<T, nlohmann::json> || std::same_as<T, nlohmann::ordered_json> ||
           (requires(nlohmann::json& to, const T& from) { nlohmann::to_json(to, from); } ||
            requires(const nlohmann::json& from, T& to) { nlohmann::from_json(from, to); })
struct JsonCodec<T> {
  static void encode(const T& value, std::string& out)
    requires std::constructible_from<nlohmann::json, const T&>
  {
    constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
    if constexpr (std::same_as<T, nlohmann::json> || std::same_as<T, nlohmann::ordered_json>) {
      out += value.dump(-1, ' ', false, kReplace);
    } else {
      out += nlohmann::json(value).dump(-1, ' ', false, kReplace);
    }
  }

  static T decode(std::string_view text) {
    using Json =
        std::conditional_t<std::same_as<T, nlohmann::ordered_json>, nlohmann::ordered_json, nlohmann::json>;
    if (const std::size_t at = text.find('\0'); at != text.npos)
      throw JsonError(at + 1);  // the library ends there
    Json json;
    try {
      json = Json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
      throw JsonError(error.byte);
    } catch (const nlohmann::json::exception&) {
      throw JsonError(std::string("a number is too large"));
    }
    if constexpr (std::same_as<T, Json>) {
      return json;
    } else {
      try {
        T value = json.template get<T>();
        if constexpr (std::constructible_from<Json, const T&>) {
          if (const auto place = detail::lost_number(json, Json(value)))
            throw JsonError(detail::json_problem(*place, "a value", "does not fit its type"));
        }
        return value;
      } catch (const nlohmann::json::exception& error) {
        throw JsonError(detail::no_such_value(json, error.id, error.what()));
      }
    }
  }
};

}  // namespace tuza::http
