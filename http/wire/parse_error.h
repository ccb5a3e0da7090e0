// An error value for a message that breaks a rule: which kind of rule, the message, the position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::http {

// A server answers each kind with a status of its own (http/serve/refusal.h); to a client, all of them end the exchange.
enum class ParseErrc : std::uint8_t {
  kMalformed,
  kStartLineTooLong,
  kHeadTooLarge,
  kUnknownMethod,
  kUnknownVersion,
  kUnknownCoding,
  kUnknownExpectation,
};

struct ParseError {
  ParseErrc code = ParseErrc::kMalformed;
  std::string_view text;   // a literal
  std::size_t offset = 0;  // from the beginning of the message to the error, in bytes
};

}  // namespace tuza::http
