// The earliest and latest representable times, for every call that takes a time. None of them overflows: a
// time in the past has passed, a time beyond the end of time is never reached.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/sync/context.h>

#include <limits>
#include <ostream>

namespace tuza::net::testing {
namespace {

using std::chrono::nanoseconds;

// -- Points in time.

struct EdgeOfTime {
  const char* name;
  TimePoint when;
  bool passed;
};
std::ostream& operator<<(std::ostream& out, const EdgeOfTime& edge) { return out << edge.name; }

const EdgeOfTime kEdges[] = {
    {"min", TimePoint::min(), true},        {"min_and_one", TimePoint::min() + 1ns, true},
    {"before_zero", TimePoint(-1ns), true}, {"zero", TimePoint(0ns), true},
    {"one", TimePoint(1ns), true},          {"less_than_max", TimePoint::max() - 1ns, false},
    {"max", TimePoint::max(), false},
};

class TimeEdges : public ::testing::TestWithParam<EdgeOfTime> {
 protected:
  static TimePoint when() { return GetParam().when; }
  static bool passed() { return GetParam().passed; }
};
INSTANTIATE_TEST_SUITE_P(All, TimeEdges, ::testing::ValuesIn(kEdges),
                         [](const auto& c) { return std::string(c.param.name); });

struct ConnPair {
  Conn here;
  Conn there;
};
ConnPair conn_pair() {
  LocalPair pair = local_pair();
  return {detail::ConnParts::make(std::move(pair.here)), detail::ConnParts::make(std::move(pair.there))};
}

// The wait must end by a deadline that has passed, or otherwise by its own event.
template <class Wait, class Serve>
void expect_end(bool by_deadline, WaitReason reason, Wait wait, Serve serve) {
  WaitGroup group;
  bool timed_out = false;
  group.go([&] { timed_out = wait(); });
  if (!by_deadline) {
    wait_until_parked(1, reason);
    serve();
  }
  group.wait();
  EXPECT_EQ(timed_out, by_deadline);
}

bool read_times_out(Conn& conn) { return read_some(conn) == "<read: deadline exceeded>"; }
bool write_times_out(Conn& conn) {
  const Result<void> written = conn.write_all("x");
  return !written && written.error().timeout();
}
// All of it: a local stream reports room only when most of its buffer is free.
void make_room(Conn& reader) {
  std::array<std::byte, 4096> bytes;
  const auto take = [&bytes](int fd) {
    return sys::invoke(SYS_recvfrom, fd, bytes.data(), bytes.size(), MSG_DONTWAIT, nullptr, nullptr);
  };
  while (detail::ConnParts::descriptor(reader).control("drain", take)) {
  }
}

TEST_P(TimeEdges, OfAReadThatBegins) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    pair.here.set_read_deadline(when());
    expect_end(
        passed(), WaitReason::kIoRead, [&] { return read_times_out(pair.here); },
        [&] { EXPECT_TRUE(pair.there.write_all("a")); });
    pair.here.set_read_deadline(kNoDeadline);
    EXPECT_TRUE(pair.there.write_all("b"));
    EXPECT_EQ(read_some(pair.here), "b");
  });
}

TEST_P(TimeEdges, OfAReadThatWaits) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    WaitGroup group;
    group.go([&] { EXPECT_EQ(read_times_out(pair.here), passed()); });
    wait_until_parked(1, WaitReason::kIoRead);
    pair.here.set_deadline(when());
    if (!passed()) {
      EXPECT_TRUE(pair.there.write_all("a"));
    }
    group.wait();
  });
}

TEST_P(TimeEdges, OfAWriteThatBegins) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    fill(detail::ConnParts::descriptor(pair.here));
    pair.here.set_write_deadline(when());
    expect_end(
        passed(), WaitReason::kIoWrite, [&] { return write_times_out(pair.here); },
        [&] { make_room(pair.there); });
    pair.here.set_write_deadline(kNoDeadline);
    make_room(pair.there);
    EXPECT_TRUE(pair.here.write_all("b"));
  });
}

TEST_P(TimeEdges, OfAWriteThatWaits) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    fill(detail::ConnParts::descriptor(pair.here));
    WaitGroup group;
    group.go([&] { EXPECT_EQ(write_times_out(pair.here), passed()); });
    wait_until_parked(1, WaitReason::kIoWrite);
    pair.here.set_deadline(when());
    if (!passed()) make_room(pair.there);
    group.wait();
  });
}

TEST_P(TimeEdges, OfTheContextOfARead) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    const auto [ctx, cancel] = with_deadline(Context::background(), when());
    std::array<std::byte, 1> byte;
    expect_end(
        passed(), WaitReason::kIoRead,
        [&, &context = ctx] {
          const Result<std::size_t> n = pair.here.read(context, byte);
          return !n && n.error().timeout();
        },
        [&] { EXPECT_TRUE(pair.there.write_all("a")); });
  });
}

void expect_dial(std::string_view network, const Listener& listener, const std::string& address,
                 TimePoint when, bool passed) {
  const Result<Conn> conn = dial(network, address, when);
  EXPECT_EQ(conn.has_value(), !passed) << listener.address();
  EXPECT_TRUE(conn || conn.error().timeout());
}

TEST_P(TimeEdges, OfADial) {
  run_with(2, [] {
    const tuza::testing::TemporaryDirectory directory;
    const std::string path = directory / "socket";
    const Listener tcp = listen_on_loopback(), local = listen("unix", path).value();
    expect_dial("tcp", tcp, tcp.address(), when(), passed());
    expect_dial("unix", local, path, when(), passed());
  });
}

// The backlog is full, and the dial checks at intervals whether there is room.
TEST_P(TimeEdges, OfADialThatWaitsForABacklog) {
  run_with(2, [] {
    const tuza::testing::TemporaryDirectory directory;
    const std::string path = directory / "socket";
    Listener listener = listen("unix", path, {.backlog = 0}).value();
    const Conn first = dial("unix", path).value();
    expect_end(
        passed(), WaitReason::kSleep,
        [&] {
          const Result<Conn> conn = dial("unix", path, when());
          return !conn && conn.error().timeout();
        },
        [&] { EXPECT_TRUE(listener.accept()); });
  });
}

// One connection is open, whose handler waits for its client.
TEST_P(TimeEdges, OfAShutdown) {
  run_with(2, [] {
    Server server(listen_on_loopback(), [](Session& session) { read_some(session.conn()); });
    WaitGroup group;
    group.go([&server] { EXPECT_TRUE(server.serve()); });
    Conn client = dial("tcp", server.address()).value();
    yield_until([&server] { return server.connections() == 1; });
    wait_until_parked(2, WaitReason::kIoRead);
    group.go([&] {
      if (passed()) return;
      wait_until_parked(1, WaitReason::kIoRead);  // the accept loop has ended
      client.close();
    });
    EXPECT_EQ(server.shutdown(when()), !passed());
    group.wait();
    EXPECT_EQ(server.connections(), 0u);
  });
}

// -- Durations.

struct Length {
  const char* name;
  nanoseconds timeout;
  bool passes;  // at once, or nearly
};
std::ostream& operator<<(std::ostream& out, const Length& length) { return out << length.name; }

const Length kLengths[] = {
    {"min", nanoseconds::min(), true},  {"min_and_one", nanoseconds::min() + 1ns, true},
    {"minus_one", -1ns, true},          {"one", 1ns, true},
    {"zero_is_none", 0ns, false},       {"less_than_max", nanoseconds::max() - 1ns, false},
    {"max", nanoseconds::max(), false},
};

class LengthEdges : public ::testing::TestWithParam<Length> {};
INSTANTIATE_TEST_SUITE_P(All, LengthEdges, ::testing::ValuesIn(kLengths),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(LengthEdges, OfAWriteTimeout) {
  run_with(2, [] {
    ConnPair pair = conn_pair();
    pair.here.set_write_timeout(GetParam().timeout);
    EXPECT_TRUE(pair.here.write_all("a")) << "nothing waits";
    fill(detail::ConnParts::descriptor(pair.here));
    expect_end(
        GetParam().passes, WaitReason::kIoWrite, [&] { return write_times_out(pair.here); },
        [&] { make_room(pair.there); });
  });
}

TEST(LengthEdges, OfTimeAfterNow) {
  using std::chrono::hours;
  constexpr TimePoint kEnd{nanoseconds(rt::kEndOfTimeNs)};
  EXPECT_EQ(time_after_now(nanoseconds::max()), kEnd);
  EXPECT_EQ(time_after_now(hours::max()), kEnd);
  EXPECT_EQ(time_after_now(std::chrono::duration<double>(std::numeric_limits<double>::infinity())), kEnd);
  EXPECT_LT(kEnd, kNoDeadline) << "the end of time is a deadline";
  const TimePoint before = Clock::now();
  for (const TimePoint now :
       {time_after_now(0ns),
        time_after_now(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN()))}) {
    EXPECT_GE(now, before);
    EXPECT_LE(now, Clock::now());
  }
  const TimePoint earlier = time_after_now(-1ns);
  EXPECT_LT(earlier, Clock::now());
  EXPECT_LT(time_after_now(nanoseconds::min()), TimePoint(0ns));
  EXPECT_LT(time_after_now(hours::min()), TimePoint(0ns));
}

}  // namespace
}  // namespace tuza::net::testing
