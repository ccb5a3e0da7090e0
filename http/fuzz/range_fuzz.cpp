// Fuzz target: the Range field.
//
// The result agrees with a reference that decides for each single byte of a small file whether it is requested, and
// that compares numbers as texts, so that no number is too large for it. For files of every size: the parts lie within
// the file, keep the order of the request, and respect the limits of files/ranges.h.
//
// The input: size of the file (8 bytes, little endian), field value.
//
// Covers: http/files/ranges.cpp
#include <tuza/http/files/ranges.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// -1, 0 or 1, for numbers of any length. Numbers that need more than 64 bits count as equal: each lies behind every file.
int compare(std::string_view a, std::string_view b) {
  const auto strip = [](std::string_view& text) {
    while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  };
  strip(a);
  strip(b);
  constexpr std::string_view kHuge = "18446744073709551615";
  if (a.size() > kHuge.size()) a = kHuge;
  if (b.size() > kHuge.size()) b = kHuge;
  if (a.size() == kHuge.size()) a = std::min(a, kHuge);
  if (b.size() == kHuge.size()) b = std::min(b, kHuge);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

struct Spec {
  std::string first, last;  // one of them may be empty

  // Whether byte `at` of a file of `size` bytes is requested.
  [[nodiscard]] bool has(std::uint64_t at, std::uint64_t size) const {
    if (first.empty()) return compare(std::to_string(size - at), last) <= 0;
    const std::string position = std::to_string(at);
    return compare(first, position) <= 0 && (last.empty() || compare(position, last) <= 0);
  }
};

// Nullopt: the field is not a list of ranges of bytes.
std::optional<std::vector<Spec>> parse(std::string_view field) {
  if (!equals_ignoring_case(field.substr(0, 6), "bytes=")) return std::nullopt;
  std::string list(field.substr(6));
  std::vector<Spec> specs;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = trim(std::string_view(list).substr(begin, end - begin));
    begin = end + 1;
    if (item.empty()) continue;
    const std::size_t dash = item.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const Spec spec{std::string(item.substr(0, dash)), std::string(item.substr(dash + 1))};
    const bool no_first = spec.first.empty(), no_last = spec.last.empty();
    if (no_first && no_last) return std::nullopt;
    if ((!no_first && !is_number(spec.first)) || (!no_last && !is_number(spec.last))) return std::nullopt;
    if (!no_first && !no_last && compare(spec.first, spec.last) > 0) return std::nullopt;
    specs.push_back(spec);
  }
  if (specs.empty()) return std::nullopt;
  return specs;
}

void check_small(std::string_view field, std::uint64_t size, const RangeRequest& request) {
  using Kind = RangeRequest::Kind;
  const std::optional<std::vector<Spec>> specs = parse(field);
  if (!specs || specs->size() > kRangesMax || size == 0) {
    expect(request.kind == Kind::kWhole, "a field that is malformed or too costly is ignored", field);
    return;
  }
  std::vector<std::vector<bool>> wanted;  // for each range that has bytes, in order
  std::uint64_t together = 0;
  for (const Spec& spec : *specs) {
    std::vector<bool> bytes(size);
    for (std::uint64_t at = 0; at < size; ++at) bytes[at] = spec.has(at, size);
    const auto count = static_cast<std::uint64_t>(std::ranges::count(bytes, true));
    if (count > 0) wanted.push_back(std::move(bytes));
    together += count;
  }
  if (wanted.empty()) {
    expect(request.kind == Kind::kUnsatisfiable, "ranges without bytes cannot be satisfied", field);
    return;
  }
  if (wanted.size() > 1 && together > size) {
    expect(request.kind == Kind::kWhole, "ranges that exceed the file together are ignored", field);
    return;
  }
  expect(request.kind == Kind::kParts && request.parts.size() == wanted.size(),
         "each range with bytes becomes a part", field);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<bool> bytes(size);
    for (std::uint64_t at = 0; at < size; ++at) {
      bytes[at] = at >= request.parts[i].first && at <= request.parts[i].last();
    }
    expect(bytes == wanted[i], "a part has the bytes of its range", field);
  }
}

void check_range(fuzz::Input input) {
  const std::uint64_t size = input.number(8);
  const std::string_view field = input.rest();
  const RangeRequest large = parse_range(field, size);
  if (large.kind == RangeRequest::Kind::kParts) {
    std::uint64_t left = size;
    expect(!large.parts.empty() && large.parts.size() <= kRangesMax, "the number of parts is limited", field);
    for (const ByteRange& part : large.parts) {
      expect(part.length > 0 && part.first < size && part.length <= size - part.first,
             "a part lies within the file", field);
      expect(large.parts.size() == 1 || part.length <= left, "parts do not exceed the file together", field);
      left -= std::min(left, part.length);
    }
  }
  const std::uint64_t small = size % 41;
  check_small(field, small, parse_range(field, small));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_range({data, size});
  return 0;
}
