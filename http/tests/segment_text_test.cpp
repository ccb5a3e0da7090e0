// What the words of a segment are, for all lengths and places of the slash, and that nothing behind the path is read.
#include <tuza/http/route/route_node.h>
#include <tuza/http/route/segment_text.h>
#include <tuza/http/tests/at_page_end.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

namespace tuza::http {
namespace {

void expect_words(const SegmentText& segment, std::string_view text) {
  EXPECT_EQ(segment.text, text);
  char bytes[SegmentText::kInWords] = {};
  text.copy(bytes, sizeof bytes);
  std::uint64_t words[2];
  std::memcpy(words, bytes, sizeof words);
  EXPECT_EQ(segment.low, words[0]) << text;
  EXPECT_EQ(segment.high, words[1]) << text;
}

// '.' and '0' are beside the slash, and so differ from it in the lowest bits; 0xaf and 0xae in the highest bit.
std::string random_path(std::mt19937& random, std::size_t size) {
  constexpr std::string_view kBytes = "./0a\xae\xaf%\x01\xff";
  std::string path(size, ' ');
  for (char& c : path) c = kBytes[random() % kBytes.size()];
  return path;
}

TEST(SegmentTextTest, EndsAtTheFirstSlash) {
  std::mt19937 random(1);
  for (std::size_t size = 0; size <= 40; ++size) {
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_path(random, size);
      const AtPageEnd path(text);
      const std::string_view all(path.begin(), size);
      expect_words(SegmentText::first_of(all), std::string_view(text).substr(0, text.find('/')));
      expect_words(SegmentText(all), text);
    }
  }
}

TEST(SegmentTextTest, FindsASlashInEachPlaceAndNone) {
  for (std::size_t size = 0; size <= 40; ++size) {
    const std::string none(size, 'x');
    expect_words(SegmentText::first_of(none), none);
    for (std::size_t place = 0; place < size; ++place) {
      std::string path = none;
      path[place] = '/';
      expect_words(SegmentText::first_of(path), std::string_view(none).substr(0, place));
    }
  }
}

// A search asks a node only if 16 bits of the hashes are the same, so that a wrong answer is rarely seen there.
TEST(SegmentTextTest, ANodeComparesAllOfIt) {
  const std::string text = "0123456789abcdefghijklmnopqrstuv";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::string other = text.substr(0, size);
    const RouteNode node(nullptr, SegmentText(other));
    EXPECT_TRUE(node.has_text(SegmentText(other)));
    EXPECT_FALSE(node.has_text(SegmentText(std::string_view(other).substr(1)))) << size;
    other.back() = 'X';
    EXPECT_FALSE(node.has_text(SegmentText(other))) << size;
    other.back() = text[size - 1];
    other += '\0';
    EXPECT_FALSE(node.has_text(SegmentText(other))) << size;
  }
}

}  // namespace
}  // namespace tuza::http
