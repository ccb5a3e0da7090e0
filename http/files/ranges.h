// The Range field, RFC 9110 14. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tuza::http {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
  [[nodiscard]] std::uint64_t last() const { return first + length - 1; }
};

struct RangeRequest {
  enum class Kind : std::uint8_t {
    kWhole,          // no ranges, none that we understand, or too costly: ignore the field
    kParts,          // `parts`, in the requested order, each within the file
    kUnsatisfiable,  // no requested byte exists: 416
  };
  Kind kind = Kind::kWhole;
  std::vector<ByteRange> parts;
};

// Maximum number of ranges. More ranges, or ranges that together exceed the file, are not answered in parts:
// RFC 9110 14.2 warns of clients that request many small or overlapping ranges.
inline constexpr std::size_t kRangesMax = 16;

// `field` is the whole value, "bytes=0-99, -5"; `size` is the size of the file in bytes.
RangeRequest parse_range(std::string_view field, std::uint64_t size);

}  // namespace tuza::http
