// Waits of netpoll that the runtime abandons when it ends; TLS is in tls_abandon_test.cpp.
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/abandoned_wait.h>
#include <tuza/netpoll/tests/file_testing.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <filesystem>
#include <optional>

namespace tuza::net::testing {
namespace {

using tuza::testing::file_contents;
using tuza::testing::TemporaryDirectory;

// -- Listeners.

template <int kWaiters, bool kWithContext>
class Accept : public NetWait {
 public:
  void open() override { listener_.emplace(listen_on_loopback()); }
  void wait() override { (void)(kWithContext ? listener_->accept(made_.ctx()) : listener_->accept()); }
  [[nodiscard]] int waiters() const override { return kWaiters; }
  void poke() override { RawSocket::calling(SocketName::of(listener_->endpoint())); }
  bool use() override {
    return accepts(*listener_, [this] { return dial("tcp", listener_->address()); });
  }
  void close() override {
    listener_->close();
    made_.cancel();
  }

 private:
  CancellableContext made_ = with_cancel({});
  std::optional<Listener> listener_;
};

class UnixAccept : public NetWait {
 public:
  void open() override { listener_.emplace(listen("unix", path_).value()); }
  void wait() override { (void)listener_->accept(); }
  void poke() override { RawSocket::calling(SocketName::of_path(path_).value()); }
  bool use() override {
    return accepts(*listener_, [this] { return dial("unix", path_); });
  }
  void close() override { listener_->close(); }

 private:
  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "socket";
  std::optional<Listener> listener_;
};

class AdoptedAccept : public NetWait {
 public:
  void open() override { listener_.emplace(Listener::adopt(RawSocket::listening(100).release()).value()); }
  void wait() override { (void)listener_->accept(); }
  void poke() override { RawSocket::calling(SocketName::of(listener_->endpoint())); }
  bool use() override {
    return accepts(*listener_, [this] { return dial("tcp", listener_->address()); });
  }
  void close() override { listener_->close(); }

 private:
  std::optional<Listener> listener_;
};

// Dialling goroutines are abandoned with their sockets. No goroutine accepts until use().
class DialToFullBacklog : public NetWait {
 public:
  void open() override {
    listener_.emplace(listen("tcp", "127.0.0.1:0", {.backlog = 0}).value());
    first_.emplace(dial("tcp", listener_->address()).value());
  }
  void wait() override { (void)dial("tcp", listener_->address()); }
  bool use() override {
    const Result<Conn> makes_room = listener_->accept();
    return makes_room && accepts(*listener_, [this] { return dial("tcp", listener_->address()); });
  }
  void close() override { listener_->close(); }

 private:
  std::optional<Listener> listener_;
  std::optional<Conn> first_;
};

class UnixDialToFullBacklog : public NetWait {
 public:
  void open() override {
    listener_.emplace(listen("unix", path_, {.backlog = 0}).value());
    const SocketName name = SocketName::of_path(path_).value();
    do backlog_.push_back(RawSocket::calling(name));
    while (backlog_.back().connected());
  }
  void wait() override { (void)dial("unix", path_); }
  bool use() override {
    backlog_.clear();
    return accepts(*listener_, [this] { return dial("unix", path_); });
  }
  void close() override { listener_->close(); }

 private:
  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "socket";
  std::optional<Listener> listener_;
  std::vector<RawSocket> backlog_;
};

// -- Connections.

class OfPair : public NetWait {
 public:
  void open() override { ends_.emplace(tcp_pair()); }
  void close() override { ends_->client.close(); }

 protected:
  Conn& client() { return ends_->client; }
  Conn& server() { return ends_->server; }
  static void send_byte(Conn& from) {
    (void)detail::ConnParts::descriptor(from).control(
        "send", [](int fd) { return ::send(fd, "x", 1, MSG_DONTWAIT); });
  }
  std::optional<TcpPair> ends_;
};

class Read : public OfPair {
 public:
  void wait() override { read_some(client()); }
  void poke() override { send_byte(server()); }
  bool use() override { return transfers(server(), client()); }
};

class UnixRead : public Read {
 public:
  void open() override {
    const TemporaryDirectory directory;
    const std::string path = directory / "socket";
    Listener listener = listen("unix", path).value();
    Conn dialled = dial("unix", path).value();
    ends_.emplace(TcpPair{std::move(dialled), listener.accept().value()});
  }
};

class ReadWithDeadline : public Read {
 public:
  void open() override {
    Read::open();
    client().set_read_deadline(far_away());
  }
  bool use() override {
    if (!Read::use()) return false;
    client().set_read_deadline(Clock::now() + 1ms);
    return read_some(client()) == "<read: deadline exceeded>";
  }
};

class ReadWithContext : public Read {
 public:
  void wait() override {
    std::array<std::byte, 1> byte;
    (void)client().read(made_.ctx(), byte);
  }
  bool use() override {
    if (!Read::use()) return false;
    WaitGroup group;
    group.go([this] { wait(); });
    wait_until_parked(1, WaitReason::kIoRead);
    made_.cancel();
    group.wait();
    return true;
  }
  void close() override {
    Read::close();
    made_.cancel();
  }

 private:
  CancellableContext made_ = with_cancel({});
};

// The peer does not read.
template <bool kWithTimeout>
class Write : public OfPair {
 public:
  void open() override {
    OfPair::open();
    for (Conn* end : {&client(), &server()}) {
      const int bytes = 64 << 10;
      (void)detail::ConnParts::descriptor(*end).control("small", [bytes](int fd) {
        ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        return ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
      });
    }
    if constexpr (kWithTimeout) client().set_write_timeout(1h);
  }
  void wait() override { (void)client().write_all(text_); }
  void poke() override {
    (void)detail::ConnParts::descriptor(server()).control(
        "drain", [](int fd) { return ::recv(fd, nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT); });
  }
  bool use() override { return transfers(client(), server()); }

 private:
  const std::string text_ = std::string(4 << 20, 'a');
};

class SignalWait : public NetWait {
 public:
  // The end of the run closes it: what comes later meets the handler before it.
  void open() override {
    ::signal(SIGUSR1, [](int) {});
    signals_.emplace(SignalSet::open({SIGUSR1}).value());
  }
  void wait() override { (void)signals_->wait(); }
  void poke() override { ::raise(SIGUSR1); }
  bool use() override {
    EXPECT_TRUE(signals_->wait().error().is(Errc::kClosed));
    signals_.reset();
    signals_.emplace(SignalSet::open({SIGUSR1}).value());
    WaitGroup group;
    group.go([] { ::raise(SIGUSR1); });
    const bool got = signals_->wait().value_or(-1) == SIGUSR1;
    group.wait();
    return got;
  }
  void close() override { signals_->close(); }

 private:
  std::optional<SignalSet> signals_;
};

// -- Servers. One connection is open and waits, and the accept loop waits for another: the maximum allowed.

class ServerWait : public NetWait {
 public:
  void open() override {
    listener_.emplace(listen_on_loopback());
    server_.emplace(*listener_, &echo, ServeOptions{.max_connections = 2});
    client_.emplace(dial("tcp", listener_->address()).value());
  }
  void wait() override { (void)server_->serve(); }
  [[nodiscard]] int waiters() const override { return 1; }
  void poke() override { RawSocket::calling(SocketName::of(listener_->endpoint())); }
  bool use() override {
    WaitGroup group;
    group.go([this] { EXPECT_TRUE(server_->serve()); });
    Conn client = dial("tcp", listener_->address()).value();
    const bool answered = answers(client);
    EXPECT_TRUE(server_->shutdown(far_away()));
    group.wait();
    return answered && server_->connections() == 0;
  }
  void close() override { listener_->close(); }

 private:
  std::optional<Listener> listener_;
  std::optional<Server> server_;
  std::optional<Conn> client_;
};

class ServeFunction : public NetWait {
 public:
  void open() override {
    listener_.emplace(listen_on_loopback());
    client_.emplace(dial("tcp", listener_->address()).value());
  }
  void wait() override {
    (void)serve(*listener_, [](Conn& conn) { read_some(conn); });
  }
  void poke() override { RawSocket::calling(SocketName::of(listener_->endpoint())); }
  bool use() override {
    return accepts(*listener_, [this] { return dial("tcp", listener_->address()); });
  }
  void close() override { listener_->close(); }

 private:
  std::optional<Listener> listener_;
  std::optional<Conn> client_;
};

}  // namespace

std::vector<WaitKind> all_kinds_of_waits() {
  return {
      kind_of_wait<Accept<1, false>>("Accept"),
      kind_of_wait<Accept<3, false>>("AcceptBehindOthers"),
      kind_of_wait<Accept<2, true>>("AcceptWithContext"),
      kind_of_wait<UnixAccept>("UnixAccept"),
      kind_of_wait<AdoptedAccept>("AdoptedAccept"),
      kind_of_wait<DialToFullBacklog>("Dial"),
      kind_of_wait<UnixDialToFullBacklog>("UnixDial"),
      kind_of_wait<Read>("Read"),
      kind_of_wait<UnixRead>("UnixRead"),
      kind_of_wait<ReadWithDeadline>("ReadWithDeadline"),
      kind_of_wait<ReadWithContext>("ReadWithContext"),
      kind_of_wait<Write<false>>("Write"),
      kind_of_wait<Write<true>>("WriteWithTimeout"),
      kind_of_wait<SignalWait>("Signals"),
      kind_of_wait<ServerWait>("Server"),
      kind_of_wait<ServeFunction>("ServeFunction"),
  };
}

namespace {

// -- Special cases.

// The server's sessions were on stacks that no longer exist.
TEST(AbandonedServer, MayBeShutDownInTheNextRuntime) {
  std::optional<Server> server;
  std::optional<Conn> client;
  for (const int procs : {1, 2}) {
    run(RunOptions{.max_procs = procs}, [&] {
      server.emplace(listen_on_loopback(), &echo);
      client.emplace(dial("tcp", server->address()).value());
      go([&server] { (void)server->serve(); });
      wait_until_all_park();
      EXPECT_EQ(server->connections(), 1u);
    });
    EXPECT_EQ(server->connections(), 0u);
    run_with(procs, [&server] { EXPECT_TRUE(server->shutdown(far_away())); });
  }
}

// A deadline that passes between two runtimes has passed in the second.
TEST(AbandonedRead, ItsDeadlinePassesWhileThereIsNoRuntime) {
  std::optional<TcpPair> ends;
  run(RunOptions{.max_procs = 2}, [&ends] {
    ends.emplace(tcp_pair());
    ends->client.set_read_deadline(Clock::now() + 1h);
    go([&ends] { read_some(ends->client); });
    wait_until_all_park();
    ends->client.set_read_deadline(Clock::now() + 30ms);
  });
  std::this_thread::sleep_for(40ms);
  run_with(2, [&ends] { EXPECT_EQ(read_some(ends->client), "<read: deadline exceeded>"); });
}

// -- Files. A goroutine that reads a pipe is in the kernel with its thread and stays there; the next reader
// waits for it.

class AbandonedFileRead : public ::testing::Test {
 protected:
  AbandonedFileRead() { EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0); }

  void leave_readers() {
    run(RunOptions{.max_procs = 2}, [this] {
      file_ = File::open(path_, {.write = true}).value();  // opened for both, it does not wait
      for (int i = 0; i < 2; ++i) go([this] { read_a_byte(); });
      while (!one_reads()) sleep_for(1ms);
    });
  }
  Result<std::size_t> read_a_byte() {
    std::array<std::byte, 1> byte;
    return file_.read(byte);
  }
  // In addition to the readers of other tests, which read for ever.
  [[nodiscard]] bool one_reads() const { return threads_that_read() > before_; }
  static int threads_that_read() {
    const std::string number = std::to_string(SYS_read) + " ";
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      threads += file_contents(task.path() / "syscall").starts_with(number) ? 1 : 0;
    }
    return threads;
  }

  const int before_ = threads_that_read();
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "fifo";
  File file_;
};

TEST_F(AbandonedFileRead, TheFileMayBeDestroyedAfterwards) {
  leave_readers();
  file_ = File();
}

TEST_F(AbandonedFileRead, AThreadMayCloseTheFileAfterwards) {
  leave_readers();
  std::thread([this] { EXPECT_TRUE(file_.close()); }).join();
  run_with(2, [this] { EXPECT_TRUE(read_a_byte().error().closed()); });
}

// The goroutine's thread returns from the kernel to a runtime that no longer exists.
TEST_F(AbandonedFileRead, WhatItWaitedForMayComeAfterwards) {
  leave_readers();
  EXPECT_TRUE(file_.write_all("xy"));
  while (one_reads()) std::this_thread::yield();
  run_with(2, [this] { EXPECT_TRUE(file_.write_all("z")) << "writing needs another lock"; });
}

using AbandonedFileReadDeathTest = AbandonedFileRead;

TEST_F(AbandonedFileReadDeathTest, ExitDoesNotWaitForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto exit_while_it_reads = [this] {
    run(RunOptions{.max_procs = 2}, [this] {
      file_ = File::open(path_, {.write = true}).value();
      go([this] { (void)read_a_byte(); });
      while (!one_reads()) sleep_for(1ms);
      std::exit(0);
    });
  };
  EXPECT_EXIT(exit_while_it_reads(), ::testing::ExitedWithCode(0), "^$|CHAOS_SEED");
}

}  // namespace
}  // namespace tuza::net::testing
