// Conditional requests, RFC 9110 13. Thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

class Request;

// What distinguishes this version of a file from others.
struct Validators {
  std::string etag;  // with its quotes, and W/ if it is weak
  std::chrono::sys_seconds last_modified;
  // It has been so long since that a change would show in the date: the date may be compared strongly.
  bool date_is_strong = false;
};

// All fields of that name in one, as RFC 9110 5.3 combines them; nothing if there is none.
std::optional<std::string> combined_header(const Request& request, std::string_view name);

enum class Condition { kGoOn, kNotModified, kFailed };
// The four conditions in the order of RFC 9110 13.2.2, for GET or HEAD of a file that exists.
Condition check_conditions(const Request& request, const Validators& current, std::chrono::sys_seconds now);

// Whether a Range field counts, as far as If-Range is concerned.
bool if_range_holds(const Request& request, const Validators& current, std::chrono::sys_seconds now);

// Whether the list of an If-Match or If-None-Match has `etag` in it, or is "*".
bool matches_any(std::string_view list, std::string_view etag, bool strongly);

}  // namespace tuza::http
