#include <tuza/http/files/preconditions.h>

#include <tuza/http/files/http_date.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/wire/chars.h>

namespace tuza::http {
namespace {

using std::chrono::sys_seconds;

bool is_weak(std::string_view etag) { return etag.starts_with("W/"); }
std::string_view opaque(std::string_view etag) { return is_weak(etag) ? etag.substr(2) : etag; }

bool same(std::string_view a, std::string_view b, bool strongly) {
  if (strongly && (is_weak(a) || is_weak(b))) return false;
  return opaque(a) == opaque(b);
}

// Removes and returns the entity-tag at the beginning of `rest`; empty if there is none.
std::string_view take_etag(std::string_view& rest) {
  const std::size_t open = is_weak(rest) ? 2 : 0;
  if (rest.size() <= open || rest[open] != '"') return {};
  const std::size_t close = rest.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  const std::string_view etag = rest.substr(0, close + 1);
  rest.remove_prefix(close + 1);
  return etag;
}

// A repeated or malformed date is ignored.
std::optional<sys_seconds> date_header(const Request& request, std::string_view name, sys_seconds now) {
  const std::optional<std::string> value = combined_header(request, name);
  return value ? parse_http_date(*value, now) : std::nullopt;
}

}  // namespace

std::optional<std::string> combined_header(const Request& request, std::string_view name) {
  std::optional<std::string> all;
  for (const HeaderField field : request.headers()) {
    if (!equals_ignoring_case(field.name, name)) continue;
    all = all ? *all + ", " + std::string(field.value) : std::string(field.value);
  }
  return all;
}

bool matches_any(std::string_view list, std::string_view etag, bool strongly) {
  if (list == "*") return true;
  for (std::string_view rest = list;;) {
    while (!rest.empty() && (rest.front() == ',' || rest.front() == ' ' || rest.front() == '\t')) {
      rest.remove_prefix(1);
    }
    const std::string_view candidate = take_etag(rest);
    if (candidate.empty()) return false;  // the end, or an unknown form
    if (same(candidate, etag, strongly)) return true;
  }
}

Condition check_conditions(const Request& request, const Validators& current, sys_seconds now) {
  if (const auto if_match = combined_header(request, "If-Match")) {
    if (!matches_any(*if_match, current.etag, true)) return Condition::kFailed;
  } else if (const auto limit = date_header(request, "If-Unmodified-Since", now); limit && current.has_date) {
    if (current.last_modified > *limit) return Condition::kFailed;
  }
  if (const auto if_none_match = combined_header(request, "If-None-Match")) {
    if (matches_any(*if_none_match, current.etag, false)) return Condition::kNotModified;
  } else if (const auto since = date_header(request, "If-Modified-Since", now); since && current.has_date) {
    if (current.last_modified <= *since) return Condition::kNotModified;
  }
  return Condition::kGoOn;
}

void answer_not_modified(ResponseWriter& response) {
  for (const char* name : {"Content-Type", "Content-Encoding", "Content-Language", "Content-Length"}) {
    response.remove_header(name);
  }
  response.status(304);
}

bool if_range_holds(const Request& request, const Validators& current, sys_seconds now) {
  const std::optional<std::string> value = combined_header(request, "If-Range");
  if (!value) return true;
  std::string_view rest = *value;
  if (const std::string_view etag = take_etag(rest); !etag.empty()) {
    return rest.empty() && same(etag, current.etag, true);
  }
  const std::optional<sys_seconds> date = parse_http_date(*value, now);
  return date && current.has_date && current.date_is_strong && *date == current.last_modified;
}

}  // namespace tuza::http
