// Boost.Redis on goroutines, with a real server beside it (with_redis.py).
#include <tuza/framework/boost_asio_bridge.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <boost/redis/connection.hpp>
#include <boost/redis/src.hpp>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

namespace tuza {
namespace {

using namespace std::chrono_literals;
namespace redis = boost::redis;
using testing::run_with;
using testing::WithProcs;

class BoostRedisTest : public WithProcs {};
TUZA_WITH_PROCS(BoostRedisTest);

// A connection that runs in a goroutine of its own, for the length of a scope.
class Redis {
 public:
  // A connection is not thread-safe: all goroutines begin their operations on its executor.
  auto token(const Context& ctx = {}) { return use_goroutine.on(connection_.get_executor(), ctx); }

  Redis() : connection_(context_.io()) {
    config_.addr.port = std::getenv("TUZA_REDIS_PORT");
    config_.health_check_interval = 0s;
    running_.go([this] {
      const Result<void> ended =
          connection_.async_run(config_, redis::logger(redis::logger::level::err), token());
      EXPECT_FALSE(ended) << "it ends when it is cancelled";
    });
  }
  ~Redis() {
    boost::asio::post(context_.io(), [this] { connection_.cancel(); });
    running_.wait();
  }
  redis::connection* operator->() { return &connection_; }

 private:
  BoostAsioContext context_;
  redis::config config_;
  redis::connection connection_;
  WaitGroup running_;
};

TEST_P(BoostRedisTest, ManyGoroutinesShareAConnection) {
  run_with(GetParam(), [] {
    Redis db;
    redis::request clear;
    clear.push("DEL", "count");
    ASSERT_TRUE(db->async_exec(clear, redis::ignore, db.token()));
    WaitGroup clients;
    for (int i = 0; i < 50; ++i) {
      clients.go([&db, i] {
        const std::string key = "key" + std::to_string(i);
        redis::request request;
        request.push("SET", key, i);
        request.push("GET", key);
        request.push("INCR", "count");
        redis::response<redis::ignore_t, std::string, int> response;
        const auto done = db->async_exec(request, response, db.token());
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_EQ(std::get<1>(response).value(), std::to_string(i));
      });
    }
    clients.wait();
    redis::request total;
    total.push("GET", "count");
    redis::response<int> response;
    ASSERT_TRUE(db->async_exec(total, response, db.token()));
    EXPECT_EQ(std::get<0>(response).value(), 50);
  });
}

TEST_P(BoostRedisTest, AContextEndsAWaitForTheServer) {
  run_with(GetParam(), [] {
    Redis db;
    redis::request ping;
    ping.push("PING");
    ASSERT_TRUE(db->async_exec(ping, redis::ignore, db.token()));
    redis::request nobody_pushes;
    nobody_pushes.push("BLPOP", "nothing", 0);
    redis::generic_response response;
    const auto [ctx, cancel] = with_timeout(Context::background(), 20ms);
    const auto waited = db->async_exec(nobody_pushes, response, db.token(ctx));
    ASSERT_FALSE(waited);
    EXPECT_TRUE(waited.error().timeout()) << waited.error().message();
  });
}

TEST_P(BoostRedisTest, AnErrorOfTheServerIsInItsResponse) {
  run_with(GetParam(), [] {
    Redis db;
    redis::request wrong;
    wrong.push("NOSUCHCOMMAND");
    redis::response<std::string> response;
    ASSERT_TRUE(db->async_exec(wrong, response, db.token()));
    ASSERT_TRUE(std::get<0>(response).has_error());
    EXPECT_NE(std::get<0>(response).error().diagnostic.find("unknown command"), std::string::npos);
  });
}

}  // namespace
}  // namespace tuza
