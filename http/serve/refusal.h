// What a server answers to bad input: the status, the message, the position of the error.
#pragma once

#include <tuza/http/wire/parse_error.h>

#include <cstddef>
#include <string_view>

namespace tuza::http {

struct BadRequest {
  int status = 400;
  std::string_view text;   // public: part of the response; a literal
  std::size_t offset = 0;  // from the beginning of the request to the error, in bytes
};

constexpr int status_of(ParseErrc code) {
  switch (code) {
    case ParseErrc::kMalformed: return 400;
    case ParseErrc::kStartLineTooLong: return 414;
    case ParseErrc::kHeadTooLarge: return 431;
    case ParseErrc::kUnknownMethod:
    case ParseErrc::kUnknownCoding: return 501;
    case ParseErrc::kUnknownVersion: return 505;
    case ParseErrc::kUnknownExpectation: return 417;
  }
  return 400;
}

constexpr BadRequest refusal(const ParseError& error) {
  return {status_of(error.code), error.text, error.offset};
}

}  // namespace tuza::http
