// Queries to a real server: with_postgres.py starts one, and names it in TUZA_POSTGRES.
#include <tuza/framework/postgres_pool.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::postgres {
namespace {

using namespace std::chrono_literals;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class PostgresTest : public WithProcs {};
TUZA_WITH_PROCS(PostgresTest);

std::string server() {
  const char* conninfo = std::getenv("TUZA_POSTGRES");
  return conninfo != nullptr ? conninfo : "host=/nowhere";
}
const Context kNoLimit = Context::background();

Connection connect() { return Connection::open(kNoLimit, server()).value(); }

TEST_P(PostgresTest, RowsValuesAndNulls) {
  run_with(GetParam(), [] {
    Connection db = connect();
    const Rows rows =
        db.query(kNoLimit, "SELECT i, 'row ' || i AS name, NULL FROM generate_series(1, 3) i").value();
    ASSERT_EQ(rows.size(), 3);
    EXPECT_EQ(rows.columns(), 3);
    EXPECT_EQ(rows.column_name(1), "name");
    EXPECT_EQ(rows.integer(2, 0), 3);
    EXPECT_EQ(rows.text(1, 1), "row 2");
    EXPECT_EQ(rows.value(0, 2), std::nullopt);
  });
}

TEST_P(PostgresTest, ParametersOfAllKinds) {
  run_with(GetParam(), [] {
    Connection db = connect();
    const Rows rows =
        db.query(kNoLimit, "SELECT $1::text, $2::bigint, $3::float8, $4::bool, $5::text, $6::int, $7::text",
                 "it's; DROP TABLE", std::int64_t{1} << 40, 0.5, true, std::nullopt, std::optional<int>(7),
                 std::string("é"))
            .value();
    EXPECT_EQ(rows.text(0, 0), "it's; DROP TABLE");
    EXPECT_EQ(rows.integer(0, 1), std::int64_t{1} << 40);
    EXPECT_EQ(rows.text(0, 2), "0.5");
    EXPECT_EQ(rows.text(0, 3), "t");
    EXPECT_FALSE(rows.value(0, 4));
    const auto zero = db.query(kNoLimit, "SELECT $1::text", std::string("a\0b", 3));
    ASSERT_FALSE(zero);
    EXPECT_EQ(zero.error().code(), sqlstate("22021"));
    EXPECT_EQ(db.query(kNoLimit, std::string("SELECT 1\0", 9)).error().code(), sqlstate("22021"));
    const auto more = db.query(kNoLimit, "SELECT $1::text, $2::numeric", 'a', -std::nan(""));
    ASSERT_TRUE(more) << more.error().message();
    EXPECT_EQ(more->text(0, 0), "a");
    EXPECT_EQ(more->text(0, 1), "NaN");
    const std::vector<std::optional<std::string>> many(70'000, "1");
    EXPECT_EQ(db.query(kNoLimit, "SELECT 1", many).error().code(), sqlstate("54023"));
    EXPECT_TRUE(db.usable());
    EXPECT_EQ(rows.integer(0, 5), 7);
    EXPECT_EQ(rows.text(0, 6), "é");
  });
}

TEST_P(PostgresTest, WhatTheServerRefusesHasItsStateAndText) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_EQ(db.query(kNoLimit, "CREATE TEMP TABLE users(name text UNIQUE)").value().size(), 0);
    EXPECT_EQ(db.query(kNoLimit, "INSERT INTO users VALUES ($1), ($2)", "a", "b").value().affected(), 2);
    const auto twice = db.query(kNoLimit, "INSERT INTO users VALUES ($1)", "a");
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code(), sqlstate("23505"));
    EXPECT_NE(twice.error().message().find("users_name_key"), std::string::npos) << twice.error().message();
    EXPECT_NE(twice.error().message().find("23505"), std::string::npos) << twice.error().message();
    const auto wrong = db.query(kNoLimit, "SELEC");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code(), sqlstate("42601"));
    EXPECT_TRUE(db.usable());
    EXPECT_TRUE(db.query(kNoLimit, "SELECT 1"));
  });
}

TEST_P(PostgresTest, MuchInBothDirections) {
  run_with(GetParam(), [] {
    Connection db = connect();
    const std::string large(20'000'000, 'x');
    const Rows rows = db.query(kNoLimit, "SELECT $1::text || 'y'", large).value();
    EXPECT_TRUE(rows.text(0, 0) == large + "y");
  });
}

// The server parses the statement before it reads the parameter, and sends a notice for each name that it shortens:
// more of them than the socket holds, while the parameter fills the other direction.
TEST_P(PostgresTest, NoticesAreReadWhileAParameterIsSent) {
  set_log_sink([](LogLevel, std::string_view) {});
  run_with(GetParam(), [] {
    Connection db = connect();
    std::string sql = "SELECT length($1::text)";
    for (int i = 0; i < 100; ++i) sql += ", 1 AS " + std::string(32'000, 'n');
    const auto [ctx, cancel] = with_timeout(kNoLimit, 2min);
    const auto rows = db.query(ctx, sql, std::string(20'000'000, 'x'));
    ASSERT_TRUE(rows) << rows.error().message();
    EXPECT_EQ(rows->integer(0, 0), 20'000'000);
  });
  set_log_sink(nullptr);
}

TEST_P(PostgresTest, WaitingQueriesHoldNoThreads) {
  run_with(GetParam(), [] {
    constexpr int kQueries = 20;
    Connection lock = connect();
    EXPECT_TRUE(lock.query(kNoLimit, "SELECT pg_advisory_lock(1)"));
    std::atomic<int> done = 0;
    WaitGroup group;
    for (int i = 0; i < kQueries; ++i) {
      group.go([&done] {
        Connection db = connect();
        EXPECT_TRUE(db.query(kNoLimit, "SELECT pg_advisory_lock_shared(1)"));
        ++done;
      });
    }
    tuza::testing::wait_until_parked(kQueries, WaitReason::kIoRead);
    EXPECT_EQ(done, 0);
    tuza::testing::yield_until([] { return sched_stats().lane == 0; });  // no thread blocks
    EXPECT_TRUE(lock.query(kNoLimit, "SELECT pg_advisory_unlock(1)"));
    group.wait();
    EXPECT_EQ(done, kQueries);
  });
}

TEST_P(PostgresTest, AContextEndsAQueryOnTheServerToo) {
  run_with(GetParam(), [] {
    Connection db = connect(), other = connect();
    const std::string pid = std::string(db.query(kNoLimit, "SELECT pg_backend_pid()").value().text(0, 0));
    auto [ctx, cancel] = with_cancel(kNoLimit);
    WaitGroup group;
    group.go([&, ctx] {
      const auto slept = db.query(ctx, "SELECT pg_sleep(3600)");
      ASSERT_FALSE(slept);
      EXPECT_TRUE(slept.error().cancelled()) << slept.error().message();
    });
    const auto sleeps = [&] {
      return other
          .query(kNoLimit,
                 "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)' AND pid = $1", pid)
          .value()
          .integer(0, 0);
    };
    while (sleeps() == 0) yield();
    cancel();
    group.wait();
    while (sleeps() != 0) yield();
    EXPECT_FALSE(db.usable());
    EXPECT_TRUE(db.query(kNoLimit, "SELECT 1").error().closed());
  });
}

TEST_P(PostgresTest, ALostConnectionIsAnError) {
  run_with(GetParam(), [] {
    Connection db = connect(), other = connect();
    const std::string pid = std::string(db.query(kNoLimit, "SELECT pg_backend_pid()").value().text(0, 0));
    WaitGroup group;
    group.go([&] {
      const auto lost = db.query(kNoLimit, "SELECT pg_sleep(3600)");
      EXPECT_TRUE(!lost && lost.error().is(std::errc::connection_reset));
    });
    tuza::testing::wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_TRUE(other.query(kNoLimit, "SELECT pg_terminate_backend($1::int)", pid));
    group.wait();
    EXPECT_FALSE(db.usable());
    EXPECT_TRUE(db.query(kNoLimit, "SELECT 1").error().closed());
    const auto nobody = Connection::open(kNoLimit, "host=/nowhere");
    ASSERT_FALSE(nobody);
    EXPECT_TRUE(nobody.error().is(std::errc::connection_refused));
    EXPECT_NE(nobody.error().message().find("/nowhere"), std::string::npos) << nobody.error().message();
    EXPECT_EQ(nobody.error().message().find_first_of("\n\t"), std::string::npos) << nobody.error().message();
  });
}

TEST_P(PostgresTest, APoolHasNoMoreConnectionsThanItMay) {
  run_with(GetParam(), [] {
    Pool pool(server(), 2);
    std::mutex mutex;
    std::set<std::string> pids;
    WaitGroup group;
    for (int i = 0; i < 20; ++i) {
      group.go([&] {
        const auto rows = pool.query(kNoLimit, "SELECT pg_backend_pid(), pg_sleep(0.001)");
        ASSERT_TRUE(rows) << rows.error().message();
        const std::scoped_lock lock(mutex);
        pids.emplace(rows->text(0, 0));
      });
    }
    group.wait();
    EXPECT_LE(pids.size(), 2u);
    auto [ctx, cancel] = with_cancel(kNoLimit);
    cancel();
    EXPECT_TRUE(pool.query(ctx, "SELECT 1").error().cancelled());
  });
}

TEST_P(PostgresTest, APoolReplacesWhatIsLostAndTakesBackWhatThrows) {
  run_with(GetParam(), [] {
    Pool pool(server(), 1);
    Connection other = connect();
    const std::string pid(pool.query(kNoLimit, "SELECT pg_backend_pid()").value().text(0, 0));
    EXPECT_TRUE(other.query(kNoLimit, "SELECT pg_terminate_backend($1::int, 10000)", pid));
    EXPECT_TRUE(pool.query(kNoLimit, "SELECT 1")) << "the lost one was idle";
    EXPECT_EQ(pool.stats().opened, 2u);
    const auto lose = [](Connection& db) {
      return db.query(kNoLimit, "SELECT pg_terminate_backend(pg_backend_pid())");
    };
    EXPECT_FALSE(pool.use(kNoLimit, lose)) << "this one was in use";
    EXPECT_TRUE(pool.query(kNoLimit, "SELECT 1"));
    const auto throws = [](Connection&) -> Result<int> { throw 7; };
    EXPECT_THROW((void)pool.use(kNoLimit, throws), int);
    const Result<int> answer = pool.use(kNoLimit, [](Connection& db) -> Result<int> {
      for (const char* statement : {"BEGIN", "SELECT 1", "COMMIT"}) {
        if (const auto done = db.query(kNoLimit, statement); !done) return std::unexpected(done.error());
      }
      return 42;
    });
    EXPECT_EQ(answer.value(), 42);
    const auto begin = [](Connection& db) { return db.query(kNoLimit, "BEGIN"); };
    EXPECT_TRUE(pool.use(kNoLimit, begin));
    const auto state = [](Connection& db) -> Result<int> { return PQtransactionStatus(db.native()); };
    EXPECT_EQ(pool.use(kNoLimit, state).value(), PQTRANS_IDLE) << "the next caller has no open transaction";
    Pool nowhere("host=/nowhere", 1);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(nowhere.query(kNoLimit, "SELECT 1").error().is(std::errc::connection_refused));
  });
}

TEST_P(PostgresTest, APoolCountsItsConnectionsAndLimitsTheirLives) {
  run_with(GetParam(), [] {
    Connection other = connect();
    const auto there = [&other](const std::string& pid) {
      const Rows rows =
          other.query(kNoLimit, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid).value();
      return rows.integer(0, 0) != 0;
    };
    Pool pool(server(), {.open_max = 2, .idle_timeout = 20ms, .life_max = 10ms});
    const std::string pid(pool.query(kNoLimit, "SELECT pg_backend_pid()").value().text(0, 0));
    tuza::testing::yield_until([&] { return !there(pid); });  // nobody has asked for it
    EXPECT_EQ(pool.stats().opened, 1u);
    EXPECT_EQ(pool.stats().closed(), 1u);
    EXPECT_FALSE(pool.use(kNoLimit, [](Connection& db) { return db.query(kNoLimit, "SELEC"); }));
    EXPECT_EQ(pool.stats().closed_broken, 0u) << "a refused statement leaves the connection as it was";
    pool.close();
    EXPECT_TRUE(pool.query(kNoLimit, "SELECT 1").error().closed());
    tuza::testing::yield_until([&] { return pool.stats().open == 0; });  // one may be ending of age
  });
}

TEST_P(PostgresTest, CopyIsRefused) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_TRUE(db.query(kNoLimit, "COPY (SELECT 1) TO STDOUT").error().is(std::errc::not_supported));
  });
}

// The statements that the server has prepared, but for the one that looks.
std::vector<std::string> prepared(Connection& db) {
  const Rows rows = db.query(kNoLimit,
                             "SELECT statement FROM pg_prepared_statements WHERE statement NOT LIKE '%'"
                             " || 'pg_prepared%' ORDER BY prepare_time")
                        .value();
  std::vector<std::string> statements;
  for (int i = 0; i < rows.size(); ++i) statements.emplace_back(rows.text(i, 0));
  return statements;
}
using Statements = std::vector<std::string>;

TEST_P(PostgresTest, AStatementIsPreparedWhenItComesAgain) {
  run_with(GetParam(), [] {
    Connection db = connect();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(db.query(kNoLimit, "SELECT $1::int + 1", i).value().integer(0, 0), i + 1);
      EXPECT_EQ(prepared(db), i == 0 ? Statements{} : Statements{"SELECT $1::int + 1"});
    }
    const auto wrong = db.query(kNoLimit, "SELECT $1::int + 1", "one");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code(), sqlstate("22P02"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(db.query(kNoLimit, "SELEC").error().code(), sqlstate("42601"));
    Connection never = Connection::open(kNoLimit, server(), {.prepared_max = 0}).value();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(never.query(kNoLimit, "SELECT 1"));
    EXPECT_EQ(prepared(never), Statements{});
  });
}

TEST_P(PostgresTest, TheServerKeepsNoMoreThanTheLimit) {
  run_with(GetParam(), [] {
    Connection db = Connection::open(kNoLimit, server(), {.prepared_max = 3}).value();
    for (int i = 0; i < 20; ++i) {
      const std::string sql = "SELECT " + std::to_string(i);
      for (int time = 0; time < 3; ++time) EXPECT_EQ(db.query(kNoLimit, sql).value().integer(0, 0), i);
    }
    EXPECT_EQ(prepared(db), (Statements{"SELECT 17", "SELECT 18", "SELECT 19"}));
  });
}

// Between two runs of a prepared statement, `change` happens.
void expect_healed(Connection& db, const std::string& change, const std::string& sql, const auto& parameter) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(db.query(kNoLimit, sql, parameter)) << sql;
  ASSERT_TRUE(db.query(kNoLimit, change)) << change;
  for (int i = 0; i < 3; ++i) {
    const auto later = db.query(kNoLimit, sql, parameter);
    EXPECT_TRUE(later) << change << ": " << later.error().message();
  }
}

TEST_P(PostgresTest, PreparedStatementsOutliveChangesOfTheSchema) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_TRUE(db.query(kNoLimit, "CREATE TEMP TABLE t(a int)"));
    EXPECT_TRUE(db.query(kNoLimit, "INSERT INTO t VALUES (1)"));
    const std::string sql = "SELECT * FROM t WHERE a = $1";
    expect_healed(db, "ALTER TABLE t ADD COLUMN b int", sql, 1);
    EXPECT_EQ(db.query(kNoLimit, sql, 1).value().columns(), 2);
    expect_healed(db, "DISCARD PLANS", sql, 1);
    expect_healed(db, "DEALLOCATE ALL", sql, 1);
    expect_healed(db, "ALTER TABLE t ALTER COLUMN a TYPE text", sql, 1);
    EXPECT_EQ(db.query(kNoLimit, sql, "one").value().size(), 0);
    EXPECT_EQ(prepared(db).size(), 1u);
  });
}

TEST_P(PostgresTest, PreparedStatementsGetTheTypesOfToday) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_TRUE(db.query(kNoLimit, "CREATE TEMP TABLE t(a int)"));
    EXPECT_TRUE(db.query(kNoLimit, "CREATE TYPE pg_temp.mood AS ENUM ('good')"));
    const std::string insert = "INSERT INTO t VALUES ($1)";
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, insert, i));
    EXPECT_TRUE(db.query(kNoLimit, "ALTER TABLE t ALTER COLUMN a TYPE bigint"));
    EXPECT_TRUE(db.query(kNoLimit, insert, 5'000'000'000));
    EXPECT_TRUE(db.query(kNoLimit, "ALTER TABLE t ALTER COLUMN a TYPE text"));
    EXPECT_TRUE(db.query(kNoLimit, insert, "abc"));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, "SELECT $1::pg_temp.mood", "good"));
    EXPECT_TRUE(db.query(kNoLimit, "DROP TYPE pg_temp.mood"));
    EXPECT_TRUE(db.query(kNoLimit, "CREATE TYPE pg_temp.mood AS ENUM ('good')"));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, "SELECT $1::pg_temp.mood", "good"));
    // What is wrong with the value stays so, and costs no statement.
    const std::size_t before = prepared(db).size();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(db.query(kNoLimit, "SELECT $1::int", 1));
      EXPECT_EQ(db.query(kNoLimit, "SELECT $1::int", "abc").error().code(), sqlstate("22P02"));
    }
    EXPECT_EQ(prepared(db).size(), before + 1);
  });
}

// It may have committed something before it failed.
TEST_P(PostgresTest, AProcedureIsNotRunAgain) {
  run_with(GetParam(), [] {
    Connection db = connect();
    const auto create = [&db](const std::string& type) {
      return db.query(kNoLimit, "CREATE PROCEDURE pg_temp.p(x " + type +
                                    ") LANGUAGE plpgsql AS 'BEGIN PERFORM 1; COMMIT; END'");
    };
    ASSERT_TRUE(create("int"));
    const std::string call = "  Call pg_temp.p($1)";
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, call, i));
    EXPECT_TRUE(db.query(kNoLimit, "DROP PROCEDURE pg_temp.p"));
    ASSERT_TRUE(create("text"));
    EXPECT_FALSE(db.query(kNoLimit, call, "a"));
    EXPECT_TRUE(db.query(kNoLimit, call, "a")) << "it has been prepared anew";
  });
}

TEST_P(PostgresTest, TransactionsAloneCloseWhatIsForgotten) {
  run_with(GetParam(), [] {
    Connection db = Connection::open(kNoLimit, server(), {.prepared_max = 4}).value();
    for (int i = 0; i < 50; ++i) {
      const std::string other = "SELECT " + std::to_string(i);
      EXPECT_TRUE(db.query(kNoLimit, "BEGIN"));
      for (int time = 0; time < 2; ++time) EXPECT_TRUE(db.query(kNoLimit, other));
      EXPECT_TRUE(db.query(kNoLimit, "SELECT $1::int", 1));
      EXPECT_FALSE(db.query(kNoLimit, "SELECT $1::int", "abc"));
      EXPECT_TRUE(db.query(kNoLimit, "ROLLBACK"));
    }
    EXPECT_LE(prepared(db).size(), 4u);
  });
}

TEST_P(PostgresTest, ATransactionEndsWithAStaleStatementAndTheNextSucceeds) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_TRUE(db.query(kNoLimit, "CREATE TEMP TABLE t(a int)"));
    for (const char* change : {"ALTER TABLE t ADD COLUMN b int", "DEALLOCATE ALL"}) {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, "SELECT * FROM t"));
      EXPECT_TRUE(db.query(kNoLimit, "BEGIN"));
      EXPECT_TRUE(db.query(kNoLimit, change));
      EXPECT_FALSE(db.query(kNoLimit, "SELECT * FROM t")) << change;
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(db.query(kNoLimit, "SELECT * FROM t").error().code(), sqlstate("25P02"));
      }
      EXPECT_TRUE(db.query(kNoLimit, "ROLLBACK")) << change;
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(db.query(kNoLimit, "SELECT * FROM t")) << change;
    }
  });
}

// As behind a proxy that lets two clients share one connection.
TEST_P(PostgresTest, ANameThatIsTakenEndsPreparing) {
  run_with(GetParam(), [] {
    Connection db = connect();
    EXPECT_TRUE(db.query(kNoLimit, "PREPARE tuza_1 AS SELECT 'of another'"));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(db.query(kNoLimit, "SELECT 'own'").value().text(0, 0), "own");
    }
    EXPECT_EQ(prepared(db).size(), 1u) << "the other's";
  });
}

}  // namespace
}  // namespace tuza::postgres
