#include <tuza/http/files/ranges.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace tuza::http {
namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

// Digits only; a number that overflows is larger than any file.
std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    value = value > (kHuge - digit) / 10 ? kHuge : value * 10 + digit;
  }
  return value;
}

// Parses one range-spec. False: malformed. Adds nothing if the range is outside the file.
bool add_range(std::string_view spec, std::uint64_t size, std::vector<ByteRange>& parts) {
  const std::size_t dash = spec.find('-');
  if (dash == std::string_view::npos || spec.size() == 1) return false;
  const std::optional<std::uint64_t> first = number(spec.substr(0, dash));
  const std::optional<std::uint64_t> last = number(spec.substr(dash + 1));
  if (!first || !last) return false;
  if (dash == 0) {  // a suffix range: the last `last` bytes
    const std::uint64_t length = std::min(*last, size);
    if (length > 0) parts.push_back({size - length, length});
    return true;
  }
  const bool open = dash + 1 == spec.size();
  if (!open && *last < *first) return false;
  if (*first >= size) return true;
  parts.push_back({*first, (open ? size - 1 : std::min(*last, size - 1)) - *first + 1});
  return true;
}

}  // namespace

RangeRequest parse_range(std::string_view field, std::uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (field.size() < kUnit.size() || !equals_ignoring_case(field.substr(0, kUnit.size()), kUnit)) return {};
  std::string_view rest = field.substr(kUnit.size());
  RangeRequest request;
  std::size_t specs = 0;
  bool more = true;
  while (more) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view spec = trim(rest.substr(0, comma));
    rest.remove_prefix(more ? comma + 1 : rest.size());
    if (spec.empty()) continue;  // RFC 9110 5.6.1.2: empty list elements are ignored
    if (++specs > kRangesMax || !add_range(spec, size, request.parts)) return {};
  }
  if (specs == 0 || size == 0) return {};  // an empty file has no valid Content-Range
  if (request.parts.empty()) {
    request.kind = RangeRequest::Kind::kUnsatisfiable;
    return request;
  }
  std::uint64_t left = size;  // counted down: a sum could overflow
  for (const ByteRange& part : request.parts) {
    if (part.length > left) return {};  // never the first part: it lies within the file
    left -= part.length;
  }
  request.kind = RangeRequest::Kind::kParts;
  return request;
}

}  // namespace tuza::http
