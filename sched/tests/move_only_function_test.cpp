// The function type for standard libraries without std::move_only_function, beside that of this one.
#include <gtest/gtest.h>
#include <tuza/sched/detail/move_only_function.h>

#include <memory>
#include <string>
#include <utility>

namespace tuza {
namespace {

template <template <class> class Function>
struct Which {
  template <class Signature>
  using Of = Function<Signature>;
};

template <class T>
class MoveOnlyFunctionTest : public ::testing::Test {};
using Both = ::testing::Types<Which<detail::OwnMoveOnlyFunction>
#if defined(__cpp_lib_move_only_function)
                              ,
                              Which<std::move_only_function>
#endif
                              >;
TYPED_TEST_SUITE(MoveOnlyFunctionTest, Both);

int twice(int n) { return 2 * n; }

struct Named {
  std::string name;
  [[nodiscard]] std::string with(const std::string& greeting) const { return greeting + name; }
};

TYPED_TEST(MoveOnlyFunctionTest, CallsWhatItOwns) {
  typename TypeParam::template Of<int()> count([n = std::make_unique<int>(0)] { return ++*n; });
  EXPECT_EQ(count(), 1);
  auto moved = std::move(count);
  EXPECT_EQ(moved(), 2);
  moved = [] { return 7; };
  EXPECT_EQ(moved(), 7);
}

TYPED_TEST(MoveOnlyFunctionTest, MayBeEmpty) {
  using Function = typename TypeParam::template Of<int(int)>;
  EXPECT_FALSE(Function());
  EXPECT_TRUE(Function(nullptr) == nullptr);
  int (*none)(int) = nullptr;
  EXPECT_FALSE(Function(none));
  Function some(twice);
  EXPECT_TRUE(some);
  EXPECT_EQ(some(4), 8);
  Function taken = std::move(some);
  EXPECT_EQ(taken(5), 10);
  taken = nullptr;
  EXPECT_FALSE(taken);
}

TYPED_TEST(MoveOnlyFunctionTest, PassesArgumentsAsTheyAre) {
  typename TypeParam::template Of<std::string(std::unique_ptr<int>, std::string&) const> both(
      [](std::unique_ptr<int> owned, std::string& text) { return text += std::to_string(*owned); });
  std::string text = "a";
  EXPECT_EQ(both(std::make_unique<int>(1), text), "a1");
  EXPECT_EQ(text, "a1");
  const typename TypeParam::template Of<std::string(const Named&, const std::string&) const> method(
      &Named::with);
  EXPECT_EQ(method(Named{"you"}, "hello "), "hello you");
  int called = 0;
  typename TypeParam::template Of<void()> ignores([&] { return ++called; });
  ignores();
  EXPECT_EQ(called, 1);
}

TYPED_TEST(MoveOnlyFunctionTest, TakesOnlyWhatItCanCall) {
  using Mutating = decltype([n = 0]() mutable { return ++n; });
  EXPECT_TRUE((std::is_constructible_v<typename TypeParam::template Of<int()>, Mutating>));
  EXPECT_FALSE((std::is_constructible_v<typename TypeParam::template Of<int() const>, Mutating>));
  EXPECT_FALSE((std::is_constructible_v<typename TypeParam::template Of<int()>, decltype(&twice)>));
  EXPECT_FALSE((std::is_copy_constructible_v<typename TypeParam::template Of<int()>>));
}

TYPED_TEST(MoveOnlyFunctionTest, DestroysWhatItOwnsOnce) {
  const auto shared = std::make_shared<int>(0);
  {
    typename TypeParam::template Of<void()> holds([shared] {});
    EXPECT_EQ(shared.use_count(), 2);
    auto moved = std::move(holds);
    EXPECT_EQ(shared.use_count(), 2);
    moved = [] {};
    EXPECT_EQ(shared.use_count(), 1);
  }
}

}  // namespace
}  // namespace tuza
