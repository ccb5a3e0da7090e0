// A pattern of the router, taken apart.
#pragma once

#include <tuza/http/method.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct Pattern {
  enum class Kind : unsigned char {
    kText,  // exactly this segment, decoded
    kName,  // {name}: any one segment
    kRest,  // {name...}: whatever is left of the path, slashes included; the last segment only
  };
  struct Segment {
    Kind kind;
    std::string text;  // of the segment, or the name; empty for the rest behind a final slash
  };

  std::optional<Method> method;  // nothing: all methods
  std::vector<Segment> segments;

  // Throws std::invalid_argument that says what is wrong with it.
  static Pattern parse(std::string_view text);
};

}  // namespace tuza::http
