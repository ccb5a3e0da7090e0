// Conditional requests, RFC 9110 13. Thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

class Request;
class ResponseWriter;

// Identifies this version of a file.
struct Validators {
  std::string etag;  // with quotes, and with W/ if weak
  std::chrono::sys_seconds last_modified;
  bool has_date = true;  // false: last_modified says nothing, and is neither sent nor compared
  // The last change is long enough ago that a new change would alter the date: the date may be compared
  // strongly.
  bool date_is_strong = false;
};

// All fields with that name, combined as in RFC 9110 5.3; nullopt if there is none.
std::optional<std::string> combined_header(const Request& request, std::string_view name);

enum class Condition { kGoOn, kNotModified, kFailed };
// The four conditions in the order of RFC 9110 13.2.2, for GET or HEAD of a file that exists.
Condition check_conditions(const Request& request, const Validators& current, std::chrono::sys_seconds now);

// 304. RFC 9110 15.4.5: what the stored response says of its body is left out.
void answer_not_modified(ResponseWriter& response);

// True if If-Range, if present, permits the Range field to be used.
bool if_range_holds(const Request& request, const Validators& current, std::chrono::sys_seconds now);

// True if the list of an If-Match or If-None-Match contains `etag`, or is "*".
bool matches_any(std::string_view list, std::string_view etag, bool strongly);

}  // namespace tuza::http
