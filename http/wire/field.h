// What may be written as a header field or a trailer, in either direction. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace tuza::http {

// Throws std::invalid_argument if the value has a control character: a line end in it would let the source of that value
// write the rest of the message.
void require_one_line(std::string_view name, std::string_view value);
// The same, and if the name is no token.
void require_field(std::string_view name, std::string_view value);
// Whether `part` is a view of `whole`, such as the value of a field that is copied to another one.
[[nodiscard]] bool lies_in(std::string_view part, const std::string& whole);
// Appends "Name: value\r\n". Neither lies in `out`.
void append_field_line(std::string& out, std::string_view name, std::string_view value);
// RFC 9110 6.5.1: false for what controls framing, routing, the request, authentication or the format of the body.
[[nodiscard]] bool may_be_trailer(std::string_view name);

}  // namespace tuza::http
