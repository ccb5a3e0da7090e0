// Helpers shared by the tests of refused system calls: which caller learns of the refusal, and that all else
// continues.
#pragma once

#include <sys/uio.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/refused_calls.h>

#include <atomic>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace tuza::net::testing {

using tuza::testing::Ended;
using tuza::testing::RefusedCalls;

inline constexpr const char* kOk = "ok";

// The operation that an error names, with a note if the error's reason is not the one given by the kernel.
inline std::string who_failed(const Error& error, int reason) {
  const bool told = error.code() == std::error_code(reason, std::system_category());
  return std::string(error.op()) + (told ? "" : " (" + error.message() + ")");
}

// Timers run, and an outside thread wakes a runtime that has nothing to do but wait for a connection.
// Continues until a call has been refused: not every wait in the poller is for a timer and needs a timeout.
inline void expect_life(Listener* listener, const RefusedCalls& kernel) {
  WaitGroup group;
  group.go([listener] {
    while (listener != nullptr && listener->accept()) {
    }
  });
  for (int i = 0; i < 5 || (kernel.refused() == 0 && i < 1000); ++i) {
    sleep_for(2ms);
    Chan<int> chan;
    std::thread waker([&chan, promise = ExternalWaker()] {
      std::this_thread::sleep_for(2ms);
      go([&chan] { chan.send(1); });
    });
    EXPECT_TRUE(chan.recv());
    waker.join();
  }
  if (listener != nullptr) listener->close();
  group.wait();
}

// In a process of its own.
[[noreturn]] inline void end_child(const RefusedCalls& kernel) {
  if (kernel.refused() == 0) ::_exit(8);  // nothing was tested
  ::_exit(::testing::Test::HasFailure() ? 9 : 7);
}

// Reads before there is data, and writes more than there is room for. The server's end writes: it is not
// watched for that yet.
inline std::string try_to_talk(TcpPair& pair, int reason) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  Result<void> got, sent;
  std::atomic<bool> wrote = false;
  WaitGroup group;
  group.go([&] {
    std::vector<std::byte> buffer(kBytes + 5);
    got = pair.client.read_full(std::span(buffer).first(1));
    yield_until([&] { return wrote || goroutines_waiting(WaitReason::kIoWrite) == 1; });
    if (got) got = pair.client.read_full(std::span(buffer).subspan(1));
    if (!got) pair.client.close();
  });
  yield();
  std::string large(kBytes, 'x'), hello = "hello";
  sent = pair.server.write_all(large);
  wrote = true;
  if (sent) {
    struct iovec piece{hello.data(), hello.size()};
    sent = pair.server.writev_all(std::span(&piece, 1));
  }
  if (!sent) pair.server.close();
  group.wait();
  if (!sent && sent.error().code().value() == reason) return who_failed(sent.error(), reason);
  if (!got) return who_failed(got.error(), reason);
  return sent ? kOk : who_failed(sent.error(), reason);
}

}  // namespace tuza::net::testing
