// Resolving names within a Context, while name servers do not answer.
#include <tuza/netpoll/socket/resolve_query.h>

#include <netdb.h>
#include <tuza/netpoll/tests/fake_resolver.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/leak_check.h>

#include <functional>
#include <memory>
#include <new>

namespace tuza::net::testing {
namespace {

class ResolveTest : public WithProcs {};
TUZA_WITH_PROCS(ResolveTest);

std::shared_ptr<ResolverGate> make_gate() { return std::make_shared<ResolverGate>(); }

void wait_for_queries(ResolverGate& gate, int count) {
  // No yield_until(): on few Ps the loop would compete with the goroutines that it waits for.
  while (gate.waiting() != count) sleep_for(1ms);
}

std::string text_of(const Result<std::vector<Endpoint>>& all) {
  if (!all) return all.error().message();
  std::string text;
  for (const Endpoint& endpoint : *all) text += to_string(endpoint) + " ";
  return text;
}

// All calls whose query ends with a context.
using Call = std::function<Error(const Context& ctx, const std::string& address)>;
template <class T>
Error error_of(const Result<T>& result) {
  return result ? Error(std::error_code(), "none") : result.error();
}
const Call kCalls[] = {
    [](const Context& ctx, const std::string& address) { return error_of(resolve(ctx, address)); },
    [](const Context& ctx, const std::string& address) { return error_of(resolve_all(ctx, address)); },
    [](const Context& ctx, const std::string& address) { return error_of(dial(ctx, "tcp", address)); },
    [](const Context& ctx, const std::string& address) { return error_of(listen(ctx, "tcp", address)); },
};

TEST_P(ResolveTest, AllAddressesOfANameWithAContextAndWithout) {
  const FakeResolver names({{"dual.test", {.addresses = {"::1", "127.0.0.1"}}},
                            {"again.test", {.code = EAI_AGAIN}},
                            {"none.test", {.code = EAI_NONAME}}});
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    for (const Context& each : {ctx, Context::background()}) {
      EXPECT_EQ(text_of(resolve_all(each, "dual.test:80")), "[::1]:80 127.0.0.1:80 ");
      EXPECT_EQ(to_string(resolve(each, "dual.test:80").value()), "[::1]:80");
      EXPECT_EQ(text_of(resolve_all(each, "again.test:80")),
                "resolve again.test:80: no answer from the name servers");
      EXPECT_TRUE(resolve(each, "none.test:80").error().is(Errc::kNoSuchHost));
      EXPECT_TRUE(resolve(each, "none.test").error().is(Errc::kBadAddress));
    }
    EXPECT_EQ(text_of(resolve_all("dual.test:80")), "[::1]:80 127.0.0.1:80 ");
    EXPECT_EQ(to_string(resolve("dual.test:80").value()), "[::1]:80");
    const Listener listener = listen_on_loopback();
    const std::string address = "dual.test:" + std::to_string(listener.endpoint().port());
    EXPECT_TRUE(dial(ctx, "tcp", address));
    EXPECT_TRUE(dial("tcp", address, far_away()));
  });
}

TEST_P(ResolveTest, AQueryWithoutMemoryIsAnErrorOnAGoroutine) {
  const FakeResolver names({{"large.test", {.no_memory = true}}});
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    const Result<Endpoint> none = resolve(ctx, "large.test:80");
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().is(std::errc::not_enough_memory));
    EXPECT_THROW((void)resolve("large.test:80"), std::bad_alloc);
  });
}

TEST_P(ResolveTest, OnlyAQueryThatCanBeAbandonedTakesAGoroutine) {
  const FakeResolver names({{"known.test", {.addresses = {"127.0.0.1"}}}});
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    const std::uint64_t before = sched_stats().started;
    EXPECT_EQ(text_of(resolve_all(ctx, "127.0.0.1:80")), "127.0.0.1:80 ");
    EXPECT_EQ(text_of(resolve_all(ctx, "localhost:80")), "127.0.0.1:80 [::1]:80 ");
    EXPECT_EQ(text_of(resolve_all(Context::background(), "known.test:80")), "127.0.0.1:80 ");
    EXPECT_TRUE(resolve("known.test:80"));
    EXPECT_EQ(sched_stats().started, before);
    EXPECT_TRUE(resolve(ctx, "known.test:80"));
    EXPECT_EQ(sched_stats().started, before + 1);
  });
}

TEST(Resolve, WithAContextNeedsARunForNamesOnly) {
  const auto [ctx, cancel] = with_cancel(Context::background());
  EXPECT_TRUE(resolve(ctx, "127.0.0.1:80"));
  EXPECT_TRUE(resolve(ctx, "known.test:80").error().is(Errc::kNotRunning));
}

TEST_P(ResolveTest, AnEndedContextIsAnErrorAlsoForAnAddress) {
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    cancel(Error(Errc::kCancelled, "mine"));
    for (const Call& call : kCalls) {
      for (const char* address : {"127.0.0.1:80", "localhost:80", "known.test:80"}) {
        EXPECT_EQ(call(ctx, address).op(), "mine") << address;
      }
    }
  });
}

// run_with() checks that the query's goroutine ends; the address sanitizer, that its answer is freed.
TEST_P(ResolveTest, AContextThatIsCancelledEndsTheWaitForAQuery) {
  for (const Call& call : kCalls) {
    const auto gate = make_gate();
    const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
    run_with(GetParam(), [&] {
      const auto [ctx, cancel] = with_cancel(Context::background());
      go([&gate, &end = cancel] {
        wait_for_queries(*gate, 1);
        end(Error(Errc::kCancelled, "mine"));
      });
      EXPECT_EQ(call(ctx, "silent.test:1").op(), "mine");
      EXPECT_EQ(gate->waiting(), 1) << "the query goes on";
      gate->open();
    });
  }
}

TEST_P(ResolveTest, ADeadlineEndsTheWaitForAQuery) {
  const auto gate = make_gate();
  const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
  run_with(GetParam(), [&] {
    for (const Call& call : kCalls) {
      const auto [ctx, cancel] = with_timeout(Context::background(), 1ms, Error(Errc::kTimeout, "mine"));
      EXPECT_EQ(call(ctx, "silent.test:1").op(), "mine");
    }
    EXPECT_EQ(dial("tcp", "silent.test:1", Clock::now() + 1ms).error().message(),
              "dial silent.test:1: deadline exceeded");
    EXPECT_TRUE(dial("tcp", "silent.test:1", long_ago()).error().timeout());
    gate->open();
    EXPECT_EQ(to_string(resolve("silent.test:1").value()), "127.0.0.1:1");
  });
}

TEST_P(ResolveTest, AnAbandonedQueryIsReportedUntilItEnds) {
  const auto gate = make_gate();
  const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
  run_with(GetParam(), [&] {
    const tuza::testing::LeakCheck leaks;
    {
      const auto [ctx, cancel] = with_cancel(Context::background());
      go([&gate, &end = cancel] {
        wait_for_queries(*gate, 1);
        end();
      });
      EXPECT_TRUE(resolve(ctx, "silent.test:1").error().cancelled());
    }
    EXPECT_TRUE(leaks.report(10ms).contains("] resolve, created in ")) << leaks.report(0ms);
    gate->open();
    EXPECT_EQ(leaks.report(1h), "");
  });
}

// -- The limit

// Begins as many queries as may run at once. They are abandoned by the end of this object.
class AllPlaces {
 public:
  explicit AllPlaces(ResolverGate& gate) {
    for (int i = 0; i < kQueriesMax; ++i) {
      callers_.go([this] { EXPECT_TRUE(resolve(ended_.ctx(), "silent.test:1").error().cancelled()); });
    }
    wait_for_queries(gate, kQueriesMax);
  }
  ~AllPlaces() {
    ended_.cancel();
    callers_.wait();
  }
  AllPlaces(const AllPlaces&) = delete;
  AllPlaces& operator=(const AllPlaces&) = delete;

 private:
  const CancellableContext ended_ = with_cancel(Context::background());
  WaitGroup callers_;
};

TEST(Resolve, BeyondTheLimitCallersWaitWithinTheirContexts) {
  const auto gate = make_gate();
  const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}},
                            {"known.test", {.addresses = {"127.0.0.2"}}}});
  run_with(2, [&] {
    {
      const AllPlaces taken(*gate);
    }
    EXPECT_EQ(gate->waiting(), kQueriesMax) << "abandoned, they count";
    const auto [ctx, cancel] = with_cancel(Context::background());
    const auto [limited, end] = with_cancel(Context::background());
    WaitGroup callers;
    callers.go([&ctx] { EXPECT_EQ(to_string(resolve(ctx, "known.test:1").value()), "127.0.0.2:1"); });
    callers.go([] { EXPECT_EQ(to_string(resolve("known.test:1").value()), "127.0.0.2:1"); });
    callers.go([&limited] { EXPECT_EQ(resolve(limited, "known.test:1").error().op(), "mine"); });
    wait_until_parked(3, WaitReason::kSemaphore);
    end(Error(Errc::kCancelled, "mine"));
    wait_until_parked(2, WaitReason::kSemaphore);
    EXPECT_TRUE(dial("tcp", "known.test:1", Clock::now() + 1ms).error().timeout());
    EXPECT_TRUE(resolve(ctx, "localhost:1")) << "needs no place";
    gate->open();
    callers.wait();
  });
}

// The threads of the queries that are left behind stay, as those of all calls that do not come back.
TEST(Resolve, TheRunEndsWhileQueriesHangAndTheNextHasAllPlaces) {
  const auto gate = make_gate(), again = make_gate();
  {
    const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
    EXPECT_EQ(run(RunOptions{.max_procs = 2}, [&] { const AllPlaces taken(*gate); }), 0);
    EXPECT_EQ(gate->waiting(), kQueriesMax);
  }
  const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = again}}});
  run_with(2, [&] {
    {
      const AllPlaces taken(*again);
    }
    gate->open();
    again->open();
    EXPECT_TRUE(resolve("silent.test:1"));
  });
}

}  // namespace
}  // namespace tuza::net::testing
