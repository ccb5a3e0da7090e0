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
// its bytes become U+FFFD. A JsonCodec of your own for a type goes before this one.
#pragma once

#include <tuza/http/json_codec.h>

#include <nlohmann/json.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace tuza::http {

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
      // The library's own texts name its exceptions and C++ types.
      try {
        return json.template get<T>();
      } catch (const nlohmann::json::exception&) {
        throw JsonError(std::string("a member is missing, or has another type than expected"));
      }
    }
  }
};

}  // namespace tuza::http
