// A router pattern, parsed into its method, host and segments.
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
    kEnd,   // {$}: nothing, behind a slash; only as the last segment
    kRest,  // {name...}: the rest of the path, slashes included; only as the last segment
  };
  struct Segment {
    Kind kind;
    std::string
        text;  // the segment's text, or the name; empty for {$} and for the rest after a trailing slash
  };

  std::optional<Method> method;  // nullopt: all methods
  std::string host;              // in lower case, without a port; empty: all hosts
  std::vector<Segment> segments;

  // Throws std::invalid_argument; the message says what is wrong with the pattern.
  static Pattern parse(std::string_view text);
};

}  // namespace tuza::http
