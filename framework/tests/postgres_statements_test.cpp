#include <tuza/framework/detail/postgres_statements.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tuza::postgres::detail {
namespace {

using Names = std::vector<std::string>;

TEST(PreparedStatementsTest, AStatementIsKnownFromItsSecondTimeOn) {
  PreparedStatements statements(2);
  EXPECT_EQ(statements.seen_before("a"), nullptr);
  PreparedStatements::Statement* a = statements.seen_before("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->sql, "a");
  EXPECT_EQ(a->name, "");
  a->name = statements.new_name();
  EXPECT_EQ(statements.seen_before("a")->name, a->name);
  EXPECT_NE(statements.new_name(), a->name);
}

TEST(PreparedStatementsTest, TheOneThatHasRestedForLongestMakesRoom) {
  PreparedStatements statements(2);
  for (const char* sql : {"a", "b", "a"}) (void)statements.seen_before(sql);
  statements.seen_before("a")->name = "first";
  statements.seen_before("b")->name = "second";
  EXPECT_NE(statements.seen_before("a"), nullptr);
  EXPECT_EQ(statements.seen_before("c"), nullptr) << "takes the place of b";
  EXPECT_EQ(statements.take_to_close(), Names{"second"});
  EXPECT_EQ(statements.take_to_close(), Names{}) << "each is taken once";
  EXPECT_EQ(statements.seen_before("a")->name, "first");
  EXPECT_EQ(statements.seen_before("b"), nullptr) << "takes the place of c, which had no name";
  EXPECT_EQ(statements.take_to_close(), Names{});
}

TEST(PreparedStatementsTest, WhatIsForgottenStartsAnew) {
  PreparedStatements statements(4);
  for (const char* sql : {"a", "b", "a", "b"}) (void)statements.seen_before(sql);
  statements.seen_before("a")->name = "first";
  statements.forget(*statements.seen_before("a"));
  EXPECT_EQ(statements.seen_before("a"), nullptr);
  EXPECT_EQ(statements.take_to_close(), Names{"first"});
  statements.seen_before("b")->name = "second";
  statements.forget_all();
  EXPECT_EQ(statements.seen_before("b"), nullptr);
  EXPECT_EQ(statements.take_to_close(), Names{}) << "the server has none of them";
}

TEST(PreparedStatementsTest, NoneMayBeKnown) {
  PreparedStatements none(0), stopped(4);
  (void)stopped.seen_before("a");
  stopped.stop();
  for (PreparedStatements* statements : {&none, &stopped}) {
    EXPECT_EQ(statements->seen_before("a"), nullptr);
    EXPECT_EQ(statements->seen_before("a"), nullptr);
  }
  PreparedStatements statements(4);
  const std::string longest(PreparedStatements::kLongest, 'x');
  (void)statements.seen_before(longest);
  (void)statements.seen_before(longest + "x");
  EXPECT_NE(statements.seen_before(longest), nullptr);
  EXPECT_EQ(statements.seen_before(longest + "x"), nullptr);
}

TEST(PreparedStatementsTest, MoveWithTheirConnection) {
  PreparedStatements before(4);
  (void)before.seen_before("a");
  PreparedStatements after = std::move(before);
  EXPECT_NE(after.seen_before("a"), nullptr);
}

}  // namespace
}  // namespace tuza::postgres::detail
