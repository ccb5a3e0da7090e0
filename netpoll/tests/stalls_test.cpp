// A computing goroutine must not delay the I/O of others while there are Ps for it.
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/external.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

namespace tuza::net {
namespace {

using tuza::testing::goroutines_waiting;
using tuza::testing::run_with;
using tuza::testing::scaled;

// A client that is independent of goroutines.
int connect_to(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  return ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

// The M that leaves the poller with a goroutine wakes no other M, if goroutines have run only briefly of
// late. If that goroutine then computes, another M has to take over the poller.
TEST(Stalls, IoIsServedWhileTheGoroutineThatCameFromThePollerComputes) {
  run_with(2, [] {
    Listener listener = listen("tcp", "127.0.0.1:0").value();
    WaitGroup warm_up;
    for (int i = 0; i < 4; ++i) {
      warm_up.go([] {
        for (int k = 0; k < scaled(100'000); ++k) yield();
      });
    }
    warm_up.wait();
    std::atomic<bool> computing = false, answered = false;
    std::thread client([&, port = listener.endpoint().port(), promise = ExternalWaker()] {
      const std::array<int, 2> fds{connect_to(port), connect_to(port)};
      while (goroutines_waiting(WaitReason::kIoRead) != 2 || sched_stats().procs_idle != 2) {
        std::this_thread::yield();
      }
      char byte = 'x';
      bool good = ::write(fds[0], &byte, 1) == 1;
      while (!computing) std::this_thread::yield();
      good = good && ::write(fds[1], &byte, 1) == 1 && ::read(fds[1], &byte, 1) == 1;
      EXPECT_TRUE(good);
      answered = true;
      for (const int fd : fds) ::close(fd);
    });
    Conn first = listener.accept().value();
    Conn second = listener.accept().value();
    WaitGroup group;
    group.go([&] {
      std::array<std::byte, 1> byte;
      (void)first.read(byte);
      computing = true;
      while (!answered) {
      }
    });
    group.go([&] {
      std::array<std::byte, 1> byte;
      if (second.read(byte)) (void)second.write_all(byte);
    });
    group.wait();
    client.join();
  });
}

TEST(Stalls, ADeadlineThatAThreadMovesEarlierEndsTheWait) {
  run_with(2, [] {
    Listener listener = listen("tcp", "127.0.0.1:0").value();
    Conn client = dial("tcp", to_string(listener.endpoint())).value();
    Conn server = listener.accept().value();
    client.set_read_deadline(std::chrono::steady_clock::now() + std::chrono::hours(1));
    std::thread mover([&] {
      while (goroutines_waiting(WaitReason::kIoRead) != 1 || sched_stats().procs_idle != 2) {
        std::this_thread::yield();
      }
      client.set_read_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
    });
    std::array<std::byte, 1> byte;
    const Result<std::size_t> n = client.read(byte);
    EXPECT_TRUE(!n && n.error().timeout());
    mover.join();
  });
}

}  // namespace
}  // namespace tuza::net
