// A segment of a path or of a pattern, and its first 16 bytes as two words.
//
// With them, finding the end of a segment, hashing it and comparing it takes neither a loop nor a branch on its length: of
// paths in random order, the processor would predict each of these wrongly, and a wrong prediction costs as much as the
// rest of the step. Longer segments take loops.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tuza::http {

struct SegmentText {
  static constexpr std::size_t kInWords = 16;

  std::string_view text;
  std::uint64_t low = 0, high = 0;  // bytes 0 to 7, and 8 to 15; zeros behind the end

  SegmentText() = default;
  explicit SegmentText(std::string_view all) : text(all) { load(all); }

  // Up to the next slash, or to the end.
  [[gnu::always_inline]] static SegmentText first_of(std::string_view path) {
    SegmentText segment;
    segment.load(path);
    const std::uint64_t in_low = bytes_equal(segment.low, '/'), in_high = bytes_equal(segment.high, '/');
    const std::uint64_t slash = in_low != 0 ? in_low : in_high;
    if (slash == 0) {
      segment.text = path.size() <= kInWords ? path : path.substr(0, path.find('/', kInWords));
      return segment;
    }
    const std::size_t place = static_cast<std::size_t>(std::countr_zero(slash)) / 8;
    segment.text = {path.data(), in_low != 0 ? place : 8 + place};
    // The bits of the bytes before it.
    const std::uint64_t before = ((slash & (0 - slash)) >> 7) - 1;
    segment.low &= in_low != 0 ? before : ~std::uint64_t{0};
    segment.high &= in_low != 0 ? 0 : before;
    return segment;
  }

 private:
  // The highest bit of each byte of `word` that is `c`. Behind the first such byte, others may be marked, too.
  static constexpr std::uint64_t bytes_equal(std::uint64_t word, char c) {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kHighBits = 0x8080808080808080;
    const std::uint64_t differs = word ^ kOnes * static_cast<unsigned char>(c);
    return (differs - kOnes) & ~differs & kHighBits;
  }
  template <class Word>
  static std::uint64_t word_at(const char* from) {
    static_assert(std::endian::native == std::endian::little);
    Word word;
    std::memcpy(&word, from, sizeof word);
    return word;
  }
  // Two reads may overlap: a byte that is read twice is put into the same place.
  void load(std::string_view from) {
    const char* const data = from.data();
    const std::size_t size = from.size();
    if (size >= kInWords) {
      low = word_at<std::uint64_t>(data);
      high = word_at<std::uint64_t>(data + 8);
    } else if (size >= 8) {
      low = word_at<std::uint64_t>(data);
      high = word_at<std::uint64_t>(data + size - 8) >> 1 >> (63 - 8 * (size - 8));
    } else if (size >= 4) {
      low = word_at<std::uint32_t>(data) | word_at<std::uint32_t>(data + size - 4) << 8 * (size - 4);
    } else if (size > 0) {
      for (const std::size_t i : {std::size_t{0}, size / 2, size - 1}) {
        low |= word_at<std::uint8_t>(data + i) << 8 * i;
      }
    }
  }
};

}  // namespace tuza::http
