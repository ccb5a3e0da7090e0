// Errors as values: what they are equivalent to, TUZA_TRY(), errorf(), join_errors().
#include <tuza/sched/errorf.h>
#include <tuza/sched/join_errors.h>
#include <tuza/sched/result.h>
#include <tuza/sched/try.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza {
namespace {

// -- Conditions.

TEST(Error, OwnCodesAreEquivalentToTheConditionsOfTheStandard) {
  const Error timeout(Errc::kTimeout, "read");
  EXPECT_TRUE(timeout.is(std::errc::timed_out));
  EXPECT_TRUE(timeout.timeout());
  EXPECT_FALSE(timeout.is(std::errc::operation_canceled));
  const Error cancelled(Errc::kCancelled, "read");
  EXPECT_TRUE(cancelled.is(std::errc::operation_canceled));
  EXPECT_TRUE(cancelled.cancelled());
  EXPECT_FALSE(cancelled.is(std::errc::timed_out));
  EXPECT_TRUE(make_error_code(Errc::kTimeout) == std::errc::timed_out);
}

TEST(Error, AConditionIsAlsoThatOfTheSystem) {
  const Error system = Error::from_errno(ETIMEDOUT, "dial");
  EXPECT_TRUE(system.is(std::errc::timed_out));
  EXPECT_FALSE(system.is(Errc::kTimeout)) << "no deadline of the caller passed";
}

TEST(Error, OtherCodesAreEquivalentToThemselvesOnly) {
  for (const Errc code :
       {Errc::kClosed, Errc::kEndOfStream, Errc::kBadAddress, Errc::kOther, Errc::kResolverFailed}) {
    EXPECT_EQ(make_error_code(code).default_error_condition(),
              std::error_condition(static_cast<int>(code), error_category()));
    EXPECT_FALSE(Error(code, "x").is(std::errc::timed_out));
  }
}

TEST(Error, CopiesAreIndependentAndWhatIsMovedFromKeepsItsCode) {
  Error error(Errc::kBadAddress, "dial", "nowhere");
  Error copy = error;
  Error taken = std::move(error);
  EXPECT_EQ(taken.message(), "dial nowhere: invalid address");
  EXPECT_TRUE(error.is(Errc::kBadAddress));
  EXPECT_EQ(error.subject(), "");
  copy = Error::from_errno(ENOENT, "open");
  EXPECT_EQ(copy.message(), "open: No such file or directory");
  copy = taken;
  Error& itself = taken;
  taken = itself;
  EXPECT_EQ(copy.message(), taken.message());
  EXPECT_NE(&copy.subject(), &taken.subject());
}

// -- errorf.

TEST(Errorf, FormatsStringsNumbersAndErrors) {
  const std::string url = "http://db/";
  EXPECT_EQ(errorf("plain").message(), "plain");
  EXPECT_EQ(errorf("get {}: status {}", url, 503).message(), "get http://db/: status 503");
  EXPECT_EQ(errorf("{}{}{}", 'c', true, 0.5).message(), "ctrue0.5");
  EXPECT_EQ(errorf("{} of {}", std::size_t{3}, -4L).message(), "3 of -4");
  EXPECT_EQ(errorf("{{{}}} {{}}", "in").message(), "{in} {}");
  EXPECT_EQ(errorf("{} {}", std::string_view("view"), "literal").message(), "view literal");
  EXPECT_EQ(errorf("{}: {}", "a", Error::from_errno(ENOENT, "open", "x")).message(),
            "a: open x: No such file or directory");
  EXPECT_EQ(errorf("{}", std::make_error_code(std::errc::timed_out)).message(), "Connection timed out");
}

TEST(Errorf, WithoutACauseIsOfAKindOfItsOwn) {
  const Error error = errorf("no user {}", 7);
  EXPECT_TRUE(error.is(Errc::kOther));
  EXPECT_FALSE(error.timeout());
}

TEST(Errorf, SeesThroughAnyNumberOfWraps) {
  const Error inner(Errc::kTimeout, "read", "db:80");
  const Error outer = errorf("request {}: {}", 1, errorf("query: {}", inner));
  EXPECT_EQ(outer.message(), "request 1: query: read db:80: deadline exceeded");
  EXPECT_TRUE(outer.timeout());
  EXPECT_TRUE(outer.is(Errc::kTimeout));
  EXPECT_TRUE(outer.is(std::errc::timed_out));
  EXPECT_TRUE(errorf("{}", Error(Errc::kCancelled, "x")).cancelled());
  EXPECT_TRUE(errorf("{}", Error(Errc::kClosed, "x")).closed());
  EXPECT_TRUE(errorf("open: {}", std::make_error_code(std::errc::permission_denied))
                  .is(std::errc::permission_denied));
}

TEST(Errorf, TheFirstErrorIsTheCause) {
  const Error error = errorf("{}; then {}", Error(Errc::kClosed, "a"), Error(Errc::kTimeout, "b"));
  EXPECT_TRUE(error.closed());
  EXPECT_FALSE(error.timeout());
}

TEST(Errorf, KeepsItsTextWhenItIsCopiedAndMoved) {
  Error error = errorf("text {}", 1);
  const Error copy = error;  // NOLINT(performance-unnecessary-copy-initialization)
  const Error moved = std::move(error);
  EXPECT_EQ(copy.message(), "text 1");
  EXPECT_EQ(moved.message(), "text 1");
  EXPECT_EQ(Error(Errc::kClosed, "", "subject").message(),
            "subject: use of a closed connection, listener or file");
}

// -- join_errors.

const Error kRefused = Error::from_errno(ECONNREFUSED, "dial", "a:80");
const Error kLate(Errc::kTimeout, "read", "b:80");

TEST(JoinErrors, NoneIsASuccess) {
  EXPECT_TRUE(join_errors(std::vector<Error>{}));
  EXPECT_TRUE(join_errors(std::vector<Result<int>>{1, 2}));
}

TEST(JoinErrors, OneStaysAsItIs) {
  const Result<void> joined = join_errors(std::vector<Result<int>>{1, std::unexpected(kRefused), 2});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().op(), "dial");
  EXPECT_EQ(joined.error().subject(), "a:80");
  EXPECT_EQ(joined.error().code(), kRefused.code());
}

TEST(JoinErrors, SeveralAreListedInTheirOrder) {
  const Result<void> joined = join_errors(std::vector{kRefused, kLate, errorf("wrong answer")});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().message(),
            "dial a:80: Connection refused; read b:80: deadline exceeded; wrong answer");
}

TEST(JoinErrors, AreWhatEachOfThemIs) {
  EXPECT_TRUE(join_errors(std::vector{kLate, Error(Errc::kTimeout, "dial", "c:80")}).error().timeout());
  for (const auto& different :
       {std::vector{kRefused, kLate, kLate}, {kLate, kLate, kRefused}, {kLate, kRefused, kLate}}) {
    const Error joined = join_errors(different).error();
    EXPECT_FALSE(joined.timeout());
    EXPECT_TRUE(joined.is(Errc::kOther));
  }
}

// -- TUZA_TRY.

Result<int> parse(const std::string& text) {
  if (text.empty()) return std::unexpected(errorf("empty"));
  return static_cast<int>(text.size());
}
Result<void> check(bool good) {
  if (!good) return std::unexpected(errorf("bad"));
  return {};
}
Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return std::unexpected(errorf("negative"));
  return std::make_unique<int>(value);
}
Result<std::pair<int, std::string>> both() { return std::pair(1, std::string("one")); }
Result<std::map<int, int>> table() { return std::map<int, int>{{1, 2}}; }
template <class A, class B>
Result<A> sum(A a, B b) {
  return a + b;
}

Result<std::string> twice(const std::string& a, const std::string& b) {
  TUZA_TRY(const int first, parse(a));
  TUZA_TRY(auto second, parse(b));
  TUZA_TRY(check(first < 10));
  TUZA_TRY(parse(b));  // nobody needs the value
  return std::to_string(first + second);
}

TEST(Try, GoesOnWithTheValueOrReturnsTheError) {
  EXPECT_EQ(twice("a", "bc"), "3");
  EXPECT_EQ(twice("", "bc").error().message(), "empty");
  EXPECT_EQ(twice("a", "").error().message(), "empty");
  EXPECT_EQ(twice("0123456789", "a").error().message(), "bad");
}

TEST(Try, MovesTheValueAndTheError) {
  const auto use = [](int value) -> Result<int> {
    TUZA_TRY(std::unique_ptr<int> made, make(value));
    TUZA_TRY(auto&& referred, make(value));
    return *made + *referred;
  };
  EXPECT_EQ(use(2), 4);
  EXPECT_EQ(use(-1).error().message(), "negative");
}

TEST(Try, DeclarationsMayHaveCommasAndMayBeVariables) {
  const auto use = []() -> Result<int> {
    TUZA_TRY(auto [number, text], both());
    TUZA_TRY(std::map<int, int> numbers, table());
    TUZA_TRY(auto total, (sum<int, long>(number, 2)));
    TUZA_TRY(total, parse("four"));  // assigns
    return total + numbers.at(1) + static_cast<int>(text.size());
  };
  EXPECT_EQ(use(), 4 + 2 + 3);
}

TEST(Try, EvaluatesOnceAndNests) {
  int calls = 0;
  const auto counted = [&calls](const std::string& text) {
    ++calls;
    return parse(text);
  };
  const auto use = [&](const std::string& text) -> Result<int> {
    TUZA_TRY(auto outer, [&]() -> Result<int> {
      TUZA_TRY(auto inner, counted(text));
      return inner + 1;
    }());
    TUZA_TRY(auto a, counted("x"));
    TUZA_TRY(auto b, counted("y"));  // on one line
    return outer + a + b;
  };
  EXPECT_EQ(use("abc"), 6);
  EXPECT_EQ(calls, 3);
  EXPECT_FALSE(use(""));
  EXPECT_EQ(calls, 4);
}

TEST(Try, WithoutAValueIsOneStatement) {
  const auto use = [](bool asked, bool good) -> Result<std::string> {
    if (asked)
      TUZA_TRY(check(good));
    else
      return "not asked";
    return "good";
  };
  EXPECT_EQ(use(false, false), "not asked");
  EXPECT_EQ(use(true, true), "good");
  EXPECT_FALSE(use(true, false));
}

TEST(Try, AnLvalueIsCopiedAndStaysUsable) {
  const auto use = [](const Result<std::string>& given) -> Result<std::size_t> {
    TUZA_TRY(std::string text, given);
    text += *given;
    return text.size();
  };
  EXPECT_EQ(use("ab"), 4u);
  const Result<std::string> failed = std::unexpected(errorf("kept"));
  EXPECT_EQ(use(failed).error().message(), "kept");
  EXPECT_EQ(failed.error().message(), "kept");
}

}  // namespace
}  // namespace tuza
