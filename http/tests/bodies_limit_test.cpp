// The limit on the memory of all bodies that the handlers of a server hold at once.
#include <gtest/gtest.h>
#include <tuza/http/router.h>
#include <tuza/http/serve/body_budget.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/latch.h>

#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;
using tuza::testing::yield_until;

class BodiesLimitTest : public WithProcs {};
TUZA_WITH_PROCS(BodiesLimitTest);

constexpr std::size_t kBody = 64 << 10, kLimit = 100 << 10;

// Keeps the body of POST /keep until `go_on`, and answers POST /size at once.
struct KeepingServer {
  KeepingServer() {
    router.handle("POST /keep", [this](Request& req, ResponseWriter& res) {
      ++begun;
      const auto body = req.body();
      if (!body) return;
      go_on.wait();
      res.text(std::to_string(body->size()));
    });
    router.handle("POST /size", [](Request& req, ResponseWriter& res) {
      if (const auto body = req.body()) res.text(std::to_string(body->size()));
    });
    router.handle("POST /throw", [](Request& req, ResponseWriter&) {
      EXPECT_TRUE(req.body());
      throw std::runtime_error("asked to");
    });
    router.handle("POST /goexit", [](Request& req, ResponseWriter&) {
      EXPECT_TRUE(req.body());
      goexit();
    });
  }
  Router router;
  Latch go_on{1};
  std::atomic<std::size_t> begun{0};
};

std::string chunked(std::string_view path, std::size_t bytes) {
  std::string text =
      "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t sent = 0; sent < bytes; sent += 1024) text += "400\r\n" + std::string(1024, 'x') + "\r\n";
  return text + "0\r\n\r\n";
}

std::uint64_t refused(http::Server& server) {
  const ServerStats stats = server.stats();
  for (std::size_t i = 0; i < kRefusedStatuses.size(); ++i) {
    if (kRefusedStatuses[i] == 503) return stats.refused[i];
  }
  return 0;
}

TEST_P(BodiesLimitTest, WhatDoesNotFitAnyMoreGets503AndFitsLater) {
  run_with(GetParam(), [] {
    KeepingServer keeping;
    TestServer server(std::move(keeping.router), {.bodies_bytes_max = kLimit});
    RawClient first(server.address());
    first.send(post("/keep", std::string(kBody, 'x')));
    yield_until([&] { return server.server().stats().bodies_bytes >= kBody; });
    for (const std::string& request : {post("/size", std::string(kBody, 'y')), chunked("/size", kBody)}) {
      const Response response = fetch(server.address(), request);
      EXPECT_EQ(response.status, 503);
      EXPECT_EQ(response.header("retry-after"), "1");
      EXPECT_EQ(response.header("connection"), "close");
      EXPECT_EQ(response.body, "too many request bodies at once\n");
    }
    EXPECT_EQ(refused(server.server()), 2u);
    EXPECT_EQ(fetch(server.address(), post("/size", std::string(16 << 10, 'z'))).body, "16384")
        << "a small body does not count";
    keeping.go_on.count_down();
    EXPECT_EQ(first.read_responses(1).front().body, std::to_string(kBody));
    yield_until([&] { return server.server().stats().bodies_bytes == 0; });
    EXPECT_EQ(fetch(server.address(), post("/size", std::string(kBody, 'y'))).body, std::to_string(kBody));
    EXPECT_EQ(fetch(server.address(), chunked("/size", kBody)).body, std::to_string(kBody));
  });
}

// Ten clients announce eight megabytes each, and send a byte: each takes a piece of 16 KiB.
TEST_P(BodiesLimitTest, AnAnnouncementKeepsNobodyOut) {
  run_with(GetParam(), [] {
    KeepingServer keeping;
    TestServer server(std::move(keeping.router), {.bodies_bytes_max = 1 << 20});
    std::vector<RawClient> announcers;
    for (int i = 0; i < 10; ++i) {
      announcers.emplace_back(server.address());
      announcers.back().send("POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\nx");
    }
    // All of them wait for the rest.
    yield_until([&] {
      return keeping.begun == announcers.size() &&
             tuza::testing::goroutines_waiting(WaitReason::kIoRead) >= announcers.size();
    });
    EXPECT_LE(server.server().stats().bodies_bytes, announcers.size() * (17 << 10));
    EXPECT_EQ(fetch(server.address(), post("/size", std::string(kBody, 'y'))).body, std::to_string(kBody));
  });
}

TEST_P(BodiesLimitTest, NothingStaysHeldHoweverAHandlerEnds) {
  run_with(GetParam(), [] {
    KeepingServer keeping;
    TestServer server(std::move(keeping.router), {.bodies_bytes_max = kLimit});
    for (const char* path : {"/throw", "/goexit", "/size", "/size"}) {
      RawClient client(server.address());
      client.send(post(path, std::string(kBody, 'x')));
      (void)client.read_responses(1);
      yield_until([&] { return server.server().stats().bodies_bytes == 0; });
    }
    RawClient client(server.address());
    client.send(post("/size", std::string(kBody, 'x')) + post("/size", std::string(kBody, 'x')));
    EXPECT_EQ(client.read_responses(2).size(), 2u) << "one after the other they fit";
  });
}

TEST(BodiesLimit, HoldsForFormsAndJsonToo) {
  const auto form = [](Request& req, ResponseWriter& res) {
    (void)req.form();
    res.text("fits");
  };
  const std::string body = "a=" + std::string(kBody, 'x');
  const HeaderFields type{{"Content-Type", "application/x-www-form-urlencoded"}};
  const CallResult refused =
      call(form, "POST /", {.headers = type, .body = body, .server = {.bodies_bytes_max = kBody}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(call(form, "POST /", {.headers = type, .body = body, .server = {.bodies_bytes_max = 0}}).status,
            200);
  EXPECT_EQ(call(form, "POST /", {.headers = type, .body = body}).status, 200);
}

TEST(BodiesLimit, CountsUpToTheLimitExactly) {
  BodyBudget budget(100);
  EXPECT_TRUE(budget.try_take(60));
  EXPECT_FALSE(budget.try_take(41));
  EXPECT_TRUE(budget.try_take(40));
  EXPECT_FALSE(budget.try_take(1));
  EXPECT_FALSE(budget.try_take(std::numeric_limits<std::size_t>::max()));
  budget.give_back(100);
  EXPECT_EQ(budget.held(), 0u);
  EXPECT_TRUE(budget.try_take(100));
  BodyBudget unlimited(0);
  EXPECT_TRUE(unlimited.try_take(std::size_t{1} << 40));
  EXPECT_EQ(unlimited.held(), std::size_t{1} << 40);
}

}  // namespace
}  // namespace tuza::http::testing
