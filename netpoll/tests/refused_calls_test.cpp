// Each system call that netpoll makes, refused. docs/internals/system-calls.md states the effect of each
// refusal, and this test holds the page to it. (The scheduler's calls are covered by its own tests.)
//
// The caller of an operation learns of the refusal from the result of that call. A refusal of the poller's
// own calls, which no caller has requested, costs events at most: timers keep running, and wake-ups arrive.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <tuza/netpoll/poll/descriptor_pool.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tests/raw_socket.h>
#include <tuza/netpoll/tests/refused_testing.h>
#include <tuza/sched/log.h>

#include <atomic>
#include <ostream>
#include <string_view>

namespace tuza::net::testing {
namespace {

enum class When { kFromTheStart, kLater, kNowAndThen };
constexpr auto kStart = When::kFromTheStart;
constexpr auto kLater = When::kLater;
constexpr auto kNowAndThen = When::kNowAndThen;  // from the start on
constexpr const char* kNotTried = "not tried";

// -- Connections.

struct Connecting {
  const char* name;
  int number;
  int error;
  When when;
  // The operation that fails when a listener is made, when a connection is made, and when it is used. Earlier
  // steps are done before the refusal, if the refusal comes later.
  const char* listen = kOk;
  const char* connect = kOk;
  const char* talk = kOk;
};
std::ostream& operator<<(std::ostream& out, const Connecting& call) { return out << call.name; }

std::string try_to_listen(std::optional<Listener>& into, int reason) {
  Result<Listener> listener = listen("tcp", "127.0.0.1:0");
  if (!listener) return who_failed(listener.error(), reason);
  into.emplace(std::move(*listener));
  return kOk;
}

std::string try_to_connect(Listener& listener, std::optional<TcpPair>& into, int reason) {
  Result<Conn> client = dial("tcp", to_string(listener.endpoint()));
  if (!client) return who_failed(client.error(), reason);
  Result<Conn> server = listener.accept();
  // An earlier attempt may have left a connection in the backlog.
  const auto of_another = [&client](const Conn& conn) {
    return conn.remote_address().value_or("unknown") != client->local_address().value_or("");
  };
  while (server && of_another(*server)) server = listener.accept();
  if (!server) return who_failed(server.error(), reason);
  into.emplace(TcpPair{std::move(*client), std::move(*server)});
  return kOk;
}

// An interruption by a signal must not reach the caller; other intermittent refusals are overcome by
// retrying.
template <class Try>
std::string attempt(const Connecting& call, Try once) {
  std::string outcome = once();
  for (int more = call.when == kNowAndThen && call.error != EINTR ? 4 : 0; more > 0 && outcome != kOk; --more)
    outcome = once();
  return outcome;
}

// The netpoller waits with a timeout only if the M that waits in it has a timer to wait for, which not every
// run brings about.
void wait_with_timeouts() {
  long error = 0;
  Poller poller(error);
  EXPECT_EQ(error, 0);
  std::array<PollEvent, 4> events;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(poller.wait(100'000, events), 0u);
}

void connect_without(const Connecting& call) {
  RefusedCalls kernel(call.number, call.error);
  if (call.when == kStart) kernel.refuse_from_now_on();
  if (call.when == kNowAndThen) kernel.refuse_now_and_then();
  // One P: the M that waits in the poller also waits for timers and is the M to be woken.
  const bool of_poller = call.number == SYS_epoll_pwait2 || call.number == SYS_write;
  run(RunOptions{.max_procs = of_poller ? 1 : 2}, [&] {
    std::optional<Listener> listener;
    std::optional<TcpPair> pair;
    std::string listened, connected = kNotTried, talked = kNotTried;
    if (call.when == kLater) {
      listener.emplace(listen_on_loopback());
      pair.emplace(connect(*listener));
      kernel.refuse_from_now_on();
    }
    std::optional<Listener> other_listener;
    std::optional<TcpPair> other_pair;
    listened = attempt(call, [&] { return try_to_listen(other_listener, call.error); });
    if (!listener && other_listener) listener = std::move(other_listener);
    if (listener) {
      connected = attempt(call, [&] { return try_to_connect(*listener, other_pair, call.error); });
    }
    if (!pair && other_pair) pair = std::move(other_pair);
    if (pair) talked = try_to_talk(*pair, call.error);
    EXPECT_EQ(listened, call.listen);
    EXPECT_EQ(connected, call.connect);
    EXPECT_EQ(talked, call.talk);
    if (call.number == SYS_epoll_pwait2) wait_with_timeouts();
    expect_life(listener ? &*listener : nullptr, kernel);
  });
  end_child(kernel);
}

const Connecting kConnecting[] = {
    {"epoll_create1_start", SYS_epoll_create1, EPERM, kStart, "netpoll", kNotTried, kNotTried},
    {"epoll_create1_no_memory", SYS_epoll_create1, ENOMEM, kNowAndThen},
    {"eventfd2_start", SYS_eventfd2, EPERM, kStart, "netpoll", kNotTried, kNotTried},
    {"eventfd2_no_memory", SYS_eventfd2, ENOMEM, kNowAndThen},
    {"epoll_ctl_start", SYS_epoll_ctl, EPERM, kStart, "netpoll", kNotTried, kNotTried},
    {"epoll_ctl_later", SYS_epoll_ctl, ENOSPC, kLater, "listen", "dial", "write"},
    {"epoll_ctl_no_memory", SYS_epoll_ctl, ENOMEM, kNowAndThen, kOk, kOk, "write"},
    {"epoll_pwait_start", SYS_epoll_pwait, EPERM, kStart, "netpoll", kNotTried, kNotTried},
    {"epoll_pwait_no_memory", SYS_epoll_pwait, ENOMEM, kNowAndThen},
    {"epoll_pwait_interrupted", SYS_epoll_pwait, EINTR, kNowAndThen},
    {"epoll_pwait2_unknown", SYS_epoll_pwait2, ENOSYS, kStart},
    {"epoll_pwait2_start", SYS_epoll_pwait2, EPERM, kStart},
    {"epoll_pwait2_later", SYS_epoll_pwait2, EACCES, kLater},
    {"epoll_pwait2_no_memory", SYS_epoll_pwait2, ENOMEM, kNowAndThen},
    {"epoll_pwait2_interrupted", SYS_epoll_pwait2, EINTR, kNowAndThen},
    {"write_start", SYS_write, EPERM, kStart},
    {"write_no_memory", SYS_write, ENOMEM, kNowAndThen},
    {"write_interrupted", SYS_write, EINTR, kNowAndThen},
    {"read_start", SYS_recvfrom, EPERM, kStart, kOk, kOk, "read"},
    {"read_later", SYS_recvfrom, EPERM, kLater, kOk, kOk, "read"},
    {"read_interrupted", SYS_recvfrom, EINTR, kNowAndThen},
    {"socket_start", SYS_socket, EPERM, kStart, "listen", kNotTried, kNotTried},
    {"socket_no_descriptor", SYS_socket, EMFILE, kLater, "listen", "dial"},
    {"socket_no_memory", SYS_socket, ENOMEM, kNowAndThen},
    {"setsockopt_later", SYS_setsockopt, EPERM, kLater, "listen"},
    {"bind_start", SYS_bind, EPERM, kStart, "listen", kNotTried, kNotTried},
    {"listen_start", SYS_listen, EPERM, kStart, "listen", kNotTried, kNotTried},
    {"getsockname_start", SYS_getsockname, EPERM, kStart, "listen", kNotTried, kNotTried},
    {"connect_later", SYS_connect, EPERM, kLater, kOk, "dial"},
    {"connect_no_memory", SYS_connect, ENOMEM, kNowAndThen},
    {"connect_interrupted", SYS_connect, EINTR, kNowAndThen},
    {"getsockopt_later", SYS_getsockopt, EPERM, kLater, kOk, "dial"},
    {"getpeername_later", SYS_getpeername, EPERM, kLater, kOk, "dial"},
    {"accept4_start", SYS_accept4, EPERM, kStart, kOk, "accept", kNotTried},
    {"accept4_no_descriptor", SYS_accept4, EMFILE, kLater, kOk, "accept"},
    {"accept4_interrupted", SYS_accept4, EINTR, kNowAndThen},
    {"sendto_start", SYS_sendto, EPERM, kStart, kOk, kOk, "write"},
    {"sendto_later", SYS_sendto, ENOBUFS, kLater, kOk, kOk, "write"},
    {"sendto_interrupted", SYS_sendto, EINTR, kNowAndThen},
    {"sendmsg_later", SYS_sendmsg, EPERM, kLater, kOk, kOk, "write"},
    {"sendmsg_interrupted", SYS_sendmsg, EINTR, kNowAndThen},
    {"close_start", SYS_close, EPERM, kStart},
    {"close_interrupted", SYS_close, EINTR, kNowAndThen},
};
class RefusedConnecting : public ::testing::TestWithParam<Connecting> {};
INSTANTIATE_TEST_SUITE_P(Each, RefusedConnecting, ::testing::ValuesIn(kConnecting),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(RefusedConnecting, TheCallerGetsAnErrorAndTheOthersKeepRunning) {
  const Ended ended = tuza::testing::in_fork([] { connect_without(GetParam()); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
  // Without epoll_pwait2 there is epoll_pwait: no wait is refused.
  if (GetParam().number == SYS_epoll_pwait2) {
    EXPECT_FALSE(ended.said_this("epoll_pwait")) << ended.said;
  }
}

// -- The poller, whose calls no caller has requested.

void install(std::span<sock_filter> filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(3);
}

// As on old kernels and in sandboxes. A process can have only one RefusedCalls.
void make_unknown(int number) {
  std::array<sock_filter, 4> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install(filter);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Refused from the moment a goroutine waits in accept(). Each refusal should cost a nap: the test allows one
// refusal per millisecond, and some more for Ms that only poll.
void wait_without_polling() {
  make_unknown(SYS_epoll_pwait2);
  RefusedCalls kernel(SYS_epoll_pwait, EPERM);
  run(RunOptions{.max_procs = 1}, [&] {
    Listener listener = listen_on_loopback();
    TcpPair pair = connect(listener);
    EXPECT_EQ(try_to_talk(pair, EPERM), kOk);
    const Clock::time_point begin = Clock::now();
    kernel.refuse_from_now_on();
    expect_life(&listener, kernel);
    WaitGroup group;
    group.go([&] { read_some(pair.client); });
    sleep_for(300ms);
    const int refused = kernel.refused();
    EXPECT_LT(refused, 100 + (Clock::now() - begin) / 1ms) << "a busy loop";
    pair.client.close();
    group.wait();
  });
  end_child(kernel);
}

TEST(RefusedPolling, CostsNapsAndTimersRunOn) {
  const Ended ended = tuza::testing::in_fork(wait_without_polling);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
  EXPECT_EQ(count_of(ended.said, "tuza: epoll_pwait: Operation not permitted"), 1) << ended.said;
}

// The wake-up stays in the eventfd, and must not be found again and again; or it does not get there. Once
// refused, the call is not made again.
void wake_without(int number) {
  RefusedCalls kernel(number, EPERM);
  long error = 0;
  Poller poller(error);
  kernel.refuse_from_now_on();
  std::array<PollEvent, 4> events;
  for (int i = 0; i < 5; ++i) {
    poller.wake();
    EXPECT_EQ(poller.wait(-1, events), 0u);
    EXPECT_EQ(poller.wait(1'000'000, events), 0u);
  }
  EXPECT_EQ(kernel.refused(), 1);
  end_child(kernel);
}

TEST(RefusedPolling, AWakeUpThatCannotBeWrittenArrives) {
  const Ended ended = tuza::testing::in_fork([] { wake_without(SYS_write); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

TEST(RefusedPolling, AWakeUpThatCannotBeReadIsNotABusyLoop) {
  const Ended ended = tuza::testing::in_fork([] { wake_without(SYS_read); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// The wake-up is written, or signalled by an interest; each is refused at times. A wake-up that was not
// delivered must not hold back others: the next one arrives.
void wake_with_neither() {
  make_unknown(SYS_write);
  RefusedCalls kernel(SYS_epoll_ctl, EPERM);
  long error = 0;
  Poller poller(error);
  kernel.refuse_now_and_then();
  std::array<PollEvent, 4> events;
  for (int i = 0; i < 10; ++i) {
    poller.wake();
    poller.wake();
    EXPECT_EQ(poller.wait(-1, events), 0u);
  }
  end_child(kernel);
}

TEST(RefusedPolling, AWakeUpThatIsLostKeepsNoneBack) {
  const Ended ended = tuza::testing::in_fork(wake_with_neither);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

void open_without_thread() {
  RefusedCalls kernel(SYS_clone3, EAGAIN);
  run(RunOptions{.max_procs = 2}, [&] {
    kernel.refuse_from_now_on();
    for (int i = 0; i < 3; ++i) {
      const Result<Listener> listener = listen("tcp", "127.0.0.1:0");
      ASSERT_FALSE(listener);
      EXPECT_TRUE(listener.error().message().starts_with("cannot create the poller's thread: "))
          << listener.error().message();
    }
    sleep_for(1ms);
  });
  end_child(kernel);
}

TEST(RefusedPolling, WithoutAThreadForItNothingIsOpened) {
  const Ended ended = tuza::testing::in_fork(open_without_thread);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// Only this mapping: a thread that starts without any memory ends the process.
void refuse_mapping_of(std::size_t bytes) {
  std::array<sock_filter, 6> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                           static_cast<std::uint32_t>(offsetof(seccomp_data, args) + sizeof(std::uint64_t))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(bytes), 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install(filter);
}

// Records of descriptors are mapped by the thousand. The test uses up all that exist.
void open_without_memory() {
  run(RunOptions{.max_procs = 1}, [] {
    constexpr std::size_t kPage = 4096;
    EXPECT_TRUE(Descriptor::open(::eventfd(0, EFD_NONBLOCK), "test"));
    refuse_mapping_of((1024 * sizeof(Descriptor) + kPage - 1) / kPage * kPage);
    Descriptor* last = nullptr;
    while (Descriptor* taken = DescriptorPool::take()) last = taken;
    const int number = ::eventfd(0, EFD_NONBLOCK);
    const Result<Descriptor*> opened = Descriptor::open(number, "test");
    EXPECT_EQ(opened ? kOk : who_failed(opened.error(), ENOMEM), std::string("test"));
    EXPECT_EQ(::fcntl(number, F_GETFD), -1) << "it is still open";
    DescriptorPool::put(last);
    EXPECT_TRUE(Descriptor::open(::eventfd(0, EFD_NONBLOCK), "test"));
  });
  ::_exit(::testing::Test::HasFailure() ? 9 : 7);
}

TEST(RefusedMemory, OpeningADescriptorReturnsAnError) {
  const Ended ended = tuza::testing::in_fork(open_without_memory);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// -- Listeners and servers.

void forget_that_sockets_listen() {
  std::array<sock_filter, 6> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                                                                2 * sizeof(std::uint64_t))),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_ACCEPTCONN, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install(filter);
}

// As on macOS.
void adopt_without_the_option() {
  forget_that_sockets_listen();
  run(RunOptions{.max_procs = 2}, [] {
    const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::listen(listening, 1), 0);  // at a port of the kernel's choice
    Listener listener = Listener::adopt(listening).value();
    TcpPair pair = connect(listener);
    EXPECT_EQ(try_to_talk(pair, ENOPROTOOPT), kOk);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    EXPECT_TRUE(Listener::adopt(ends[0]).error().is(std::errc::invalid_argument));
    ::close(ends[1]);
  });
  ::_exit(::testing::Test::HasFailure() ? 9 : 7);
}

TEST(AdoptingAListener, DoesNotNeedTheOptionThatMacOSLacks) {
  const Ended ended = tuza::testing::in_fork(adopt_without_the_option);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

void accept_without_memory() {
  RefusedCalls kernel(SYS_accept4, ENOMEM);
  run(RunOptions{.max_procs = 2}, [&] {
    Listener listener = listen_on_loopback();
    kernel.refuse_now_and_then();
    Conn client = dial("tcp", listener.address()).value();
    EXPECT_TRUE(listener.accept().error().is(std::errc::not_enough_memory));
    TcpPair pair{std::move(client), listener.accept().value()};
    EXPECT_EQ(try_to_talk(pair, ENOMEM), kOk);
  });
  end_child(kernel);
}

TEST(RefusedAccept, LeavesTheConnectionInTheBacklog) {
  const Ended ended = tuza::testing::in_fork(accept_without_memory);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

void serve_without(int error) {
  RefusedCalls kernel(SYS_accept4, error);
  run(RunOptions{.max_procs = 2}, [&] {
    Listener listener = listen_on_loopback();
    Server server(listener, echo);
    WaitGroup group;
    Result<void> served;
    group.go([&] { served = server.serve(); });
    wait_until_parked(1, WaitReason::kIoRead);
    if (error == EPERM) {
      kernel.refuse_from_now_on();
      const Conn client = dial("tcp", listener.address()).value();
      group.wait();
      EXPECT_TRUE(!served && served.error().is(std::errc::operation_not_permitted));
    } else {
      kernel.refuse_now_and_then();
      // Those that are rejected are closed. How many in a row depends on when the loop finds the queue empty.
      for (int served_clients = 0; served_clients < 6;) {
        Conn client = dial("tcp", listener.address()).value();
        if (answers(client)) ++served_clients;
      }
      server.shutdown(far_away());
      group.wait();
      EXPECT_TRUE(served);
    }
  });
  end_child(kernel);
}

TEST(RefusedAccept, ForGoodEndsServe) {
  const Ended ended = tuza::testing::in_fork([] { serve_without(EPERM); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

TEST(RefusedAccept, ForWantOfDescriptorsDoesNotEndServe) {
  const Ended ended = tuza::testing::in_fork([] { serve_without(EMFILE); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// A connection that has been accepted, and that the poller then does not take.
void serve_without_watches() {
  static std::atomic<int> said{0};
  RefusedCalls kernel(SYS_epoll_ctl, ENOSPC);
  set_log_sink([](LogLevel, std::string_view line) { said += line.contains("No space left") ? 1 : 0; });
  run(RunOptions{.max_procs = 2}, [&] {
    Listener listener = listen_on_loopback();
    Server server(listener, echo);
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(server.serve()); });
    wait_until_parked(1, WaitReason::kIoRead);
    kernel.refuse_from_now_on();
    const RawSocket client = RawSocket::calling(SocketName::of(listener.endpoint()));
    for (int turn = 0; turn < 10'000 && said == 0; ++turn) sleep_for(1ms);
    EXPECT_EQ(said, 1) << "one client was lost, and nobody else waited";
    server.shutdown(far_away());
    group.wait();
  });
  end_child(kernel);
}

TEST(RefusedAccept, OfThePollerIsSaid) {
  const Ended ended = tuza::testing::in_fork(serve_without_watches);
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::net::testing
