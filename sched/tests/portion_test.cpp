// Calls that write more than other systems take at once. The limits are not reached with memory: only lengths count.
#include <gtest/gtest.h>
#include <tuza/sched/arch/portion.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

namespace tuza {
namespace {

constexpr std::size_t kMax = sys::kPortionBytesMax;

// The lengths of the pieces that one call writes.
std::vector<std::size_t> lengths_of_portion(std::initializer_list<std::size_t> lengths) {
  static std::array<std::byte, 16> memory;
  std::vector<struct iovec> pieces;
  for (const std::size_t length : lengths) pieces.push_back({&memory[pieces.size()], length});
  struct msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  message.msg_flags = 7;
  struct iovec cut{};
  const struct msghdr part = sys::portion(message, cut);
  EXPECT_EQ(part.msg_flags, 7) << "the rest is that of the message";
  std::vector<std::size_t> found;
  const std::span parts(part.msg_iov, part.msg_iovlen);
  for (const struct iovec& piece : parts) found.push_back(piece.iov_len);
  const auto first =
      std::ranges::find_if(pieces, [](const struct iovec& piece) { return piece.iov_len > 0; });
  const auto kept = std::ranges::find_if(parts, [](const struct iovec& piece) { return piece.iov_len > 0; });
  if (first != pieces.end()) {
    EXPECT_NE(kept, parts.end()) << "a call that writes nothing would be made for ever";
    if (kept != parts.end()) {
      EXPECT_EQ(kept->iov_base, first->iov_base);
    }
  }
  return found;
}

using Lengths = std::vector<std::size_t>;

TEST(PortionTest, OneReadOrWriteHasALimit) {
  EXPECT_EQ(sys::portion(0), 0u);
  EXPECT_EQ(sys::portion(kMax), kMax);
  EXPECT_EQ(sys::portion(kMax + 1), kMax);
  EXPECT_LE(kMax, 0x7fff'ffffu);
}

TEST(PortionTest, PiecesTogetherHaveTheSameLimit) {
  EXPECT_EQ(lengths_of_portion({}), Lengths());
  EXPECT_EQ(lengths_of_portion({1, 0, 2}), (Lengths{1, 0, 2}));
  EXPECT_EQ(lengths_of_portion({1, kMax - 1}), (Lengths{1, kMax - 1}));
  EXPECT_EQ(lengths_of_portion({kMax, 0, 1}), (Lengths{kMax, 0}));
  EXPECT_EQ(lengths_of_portion({1, kMax, 5}), (Lengths{1}));
  EXPECT_EQ(lengths_of_portion({kMax / 2, kMax / 2, 1}), (Lengths{kMax / 2, kMax / 2}));
}

TEST(PortionTest, APieceThatIsTooMuchByItselfIsCut) {
  EXPECT_EQ(lengths_of_portion({kMax}), (Lengths{kMax}));
  EXPECT_EQ(lengths_of_portion({kMax + 1}), (Lengths{kMax}));
  EXPECT_EQ(lengths_of_portion({~std::size_t{0}, 3}), (Lengths{kMax}));
  EXPECT_EQ(lengths_of_portion({0, 0, kMax + 1, 3}), (Lengths{kMax}))
      << "empty pieces alone would write nothing";
}

}  // namespace
}  // namespace tuza
