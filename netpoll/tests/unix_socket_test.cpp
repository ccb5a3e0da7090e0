// Unix-domain sockets, and sockets opened by another process: socket files appear and disappear, and no file
// of another owner is removed.
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/sleep.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tuza::net::testing {
namespace {

namespace fs = std::filesystem;

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = fs::temp_directory_path() / "tuza-unix-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "socket";
  }
  ~UnixSocketTest() override { fs::remove_all(folder_); }

  // What a killed process leaves behind: the file, and no listener behind it.
  void leave_a_socket_behind() {
    Listener listener = listen("unix", path_.string()).value();
    fs::rename(path_, folder_ / "kept");
    listener.close();
    fs::rename(folder_ / "kept", path_);
  }
  static std::error_code why(const Result<Listener>& listener) {
    return listener ? std::error_code() : listener.error().code();
  }
  static bool is(const Result<Listener>& listener, std::errc code) { return why(listener) == code; }

  fs::path folder_, path_;
};

TEST_F(UnixSocketTest, BytesGoBothWaysAndAddressesAreTexts) {
  run_with(2, [&] {
    Listener listener = listen("unix", path_.string()).value();
    EXPECT_EQ(listener.address(), "unix:" + path_.string());
    Conn client = dial("unix", path_.string()).value();
    Conn server = listener.accept().value();
    ASSERT_TRUE(client.write_all("question"));
    EXPECT_EQ(read_some(server), "question");
    ASSERT_TRUE(server.write_all("answer"));
    ASSERT_TRUE(server.close_write());
    EXPECT_EQ(read_to_end(client), "answer");
    EXPECT_EQ(client.remote_address().value(), "unix:" + path_.string());
    EXPECT_EQ(server.local_address().value(), "unix:" + path_.string());
    EXPECT_EQ(server.remote_address().value(), "unix:");
    EXPECT_TRUE(server.remote_endpoint().error().is(std::errc::address_family_not_supported));
    TcpPair tcp = tcp_pair();
    EXPECT_EQ(tcp.client.remote_address().value(), to_string(tcp.client.remote_endpoint().value()));
  });
}

TEST_F(UnixSocketTest, TheFileGoesWithTheListenerUnlessItIsAnothersByThen) {
  run_with(1, [&] {
    {
      Listener listener = listen("unix", path_.string()).value();
    }
    EXPECT_FALSE(fs::exists(path_));
    Listener first = listen("unix", path_.string()).value();
    fs::remove(path_);
    Listener second = listen("unix", path_.string()).value();
    first.close();
    EXPECT_TRUE(fs::exists(path_)) << "it is the second's";
    second.close();
    EXPECT_FALSE(fs::exists(path_));
  });
}

TEST_F(UnixSocketTest, AFileLeftBehindIsReplacedAndOneInUseIsNot) {
  run_with(1, [&] {
    leave_a_socket_behind();
    ASSERT_TRUE(fs::exists(path_));
    Listener listener = listen("unix", path_.string()).value();
    EXPECT_TRUE(dial("unix", path_.string()));
    EXPECT_TRUE(is(listen("unix", path_.string()), std::errc::address_in_use));
    EXPECT_TRUE(dial("unix", path_.string())) << "and the first one is still there";
  });
}

TEST_F(UnixSocketTest, WhatIsNoSocketIsLeftAlone) {
  run_with(1, [&] {
    std::ofstream(path_) << "precious";
    EXPECT_TRUE(is(listen("unix", path_.string()), std::errc::address_in_use));
    EXPECT_EQ(fs::file_size(path_), 8u);
    EXPECT_TRUE(
        is(listen("unix", folder_.string() + "/" + std::string(120, 'x')), std::errc::filename_too_long));
    EXPECT_TRUE(
        is(listen("unix", (folder_ / "no" / "socket").string()), std::errc::no_such_file_or_directory));
    EXPECT_TRUE(is(listen("unix", ""), std::errc::invalid_argument));
    EXPECT_EQ(listen("unix", "/proc/socket").error().message().substr(0, 26), "listen unix:/proc/socket: ");
    EXPECT_TRUE(dial("unix", (folder_ / "none").string()).error().is(std::errc::no_such_file_or_directory));
  });
}

// Of many processes that find the same leftover file, one gets it, and keeps it.
TEST_F(UnixSocketTest, OneOfManyThatStartAtOnceGetsTheFile) {
  run_with(4, [&] {
    for (int round = 0; round < 20; ++round) {
      leave_a_socket_behind();
      std::atomic<int> got = 0, in_use = 0;
      std::array<std::optional<Listener>, 6> listeners;
      WaitGroup group;
      for (auto& mine : listeners) {
        group.go([&] {
          Result<Listener> listener = listen("unix", path_.string());
          in_use += is(listener, std::errc::address_in_use) ? 1 : 0;
          if (!listener) return;
          ++got;
          mine.emplace(std::move(*listener));
        });
      }
      group.wait();
      EXPECT_EQ(got, 1);
      EXPECT_EQ(in_use, 5);
      EXPECT_TRUE(dial("unix", path_.string()));
    }
  });
}

TEST_F(UnixSocketTest, AForeignListenerIsTakenOverAndItsFileStays) {
  run_with(1, [&] {
    const std::string path = path_.string();
    const int theirs = ::socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(theirs, reinterpret_cast<struct sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(::listen(theirs, 1), 0);
    Listener ours = Listener::adopt(theirs).value();
    EXPECT_EQ(ours.address(), "unix:" + path);
    EXPECT_NE(::fcntl(theirs, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(theirs, F_GETFD) & FD_CLOEXEC, 0);
    Conn client = dial("unix", path).value();
    EXPECT_TRUE(ours.accept());
    ours.close();
    EXPECT_TRUE(fs::exists(path_));
  });
}

// Whoever may read the folder can lock it, and `flock FOLDER server` starts a server under such a lock.
TEST_F(UnixSocketTest, ALockOnTheFolderKeepsNoServerFromStarting) {
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(folder, LOCK_EX), 0);
  run_with(1, [&] {
    const Listener first = listen("unix", path_.string()).value();
    EXPECT_TRUE(dial("unix", path_.string()));
    EXPECT_TRUE(is(listen("unix", path_.string()), std::errc::address_in_use));
  });
  ::close(folder);
}

// Another process of the same user that has stopped in the middle of its start.
TEST_F(UnixSocketTest, TheWaitForAnotherOneThatStartsIsLimited) {
  const std::string lock = path_.string() + ".tuza-lock";
  const int starting = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(starting, LOCK_EX), 0);
  run_with(1, [&] { EXPECT_TRUE(listen("unix", path_.string())); });
  EXPECT_TRUE(fs::exists(lock)) << "its file, which is not ours to remove";
  ::close(starting);
  run_with(1, [&] { EXPECT_TRUE(listen("unix", path_.string())); });
  EXPECT_FALSE(fs::exists(lock)) << "left behind by a crash";
}

TEST_F(UnixSocketTest, TheWaitForAnotherOneThatStartsEndsWithItsContext) {
  const std::string lock = path_.string() + ".tuza-lock";
  const int starting = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(starting, LOCK_EX), 0);
  run_with(1, [&] {
    const auto [ctx, cancel] = with_timeout(Context::background(), 20ms);
    EXPECT_TRUE(listen(ctx, "unix:" + path_.string()).error().timeout());
    EXPECT_FALSE(fs::exists(path_)) << "nothing was begun";
    EXPECT_TRUE(fs::exists(lock));
    EXPECT_TRUE(listen(ctx, "unix:@" + path_.string()).error().timeout()) << "an ended one begins nothing";
  });
  ::close(starting);
}

// Somebody else may have put it there, where others may write the folder.
TEST_F(UnixSocketTest, ALockThatOthersCanTakeIsNone) {
  const std::string lock = path_.string() + ".tuza-lock";
  const int theirs = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::fchmod(theirs, 0666), 0);
  ASSERT_EQ(::flock(theirs, LOCK_EX), 0);
  run_with(1, [&] {
    const TimePoint begun = Clock::now();
    const Listener listener = listen("unix", path_.string()).value();
    EXPECT_LT(Clock::now() - begun, 2s) << "it is not waited for";
  });
  EXPECT_TRUE(fs::exists(lock));
  ::close(theirs);
  fs::remove(lock);
  fs::create_symlink("/etc/hostname", lock);
  run_with(1, [&] { EXPECT_TRUE(listen("unix", path_.string())); });
  fs::remove(lock);
  fs::create_directory(lock);
  run_with(1, [&] { EXPECT_TRUE(listen("unix", path_.string())); });
}

TEST_F(UnixSocketTest, NothingButTheSocketStaysInTheFolder) {
  run_with(1, [&] {
    const Listener listener = listen("unix", path_.string()).value();
    const std::vector<fs::directory_entry> all{fs::directory_iterator(folder_), fs::directory_iterator()};
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].path(), path_);
  });
}

TEST_F(UnixSocketTest, DialWaitsForRoomInTheBacklog) {
  run_with(2, [&] {
    const std::string path = path_.string();
    Listener listener = listen("unix", path, {.backlog = 1}).value();
    std::vector<Conn> queued;
    Result<Conn> refused = std::unexpected(Error(Errc::kClosed, ""));
    do {
      refused = dial("unix", path, Clock::now() + 500ms);
      if (refused) queued.push_back(std::move(*refused));
    } while (queued.size() < 10 && refused);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().timeout()) << refused.error().message();
    const auto [ctx, cancel] = with_timeout(Context::background(), 50ms);
    EXPECT_TRUE(dial(ctx, "unix", path).error().timeout());
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(dial("unix", path, far_away())); });
    sleep_for(20ms);
    EXPECT_TRUE(listener.accept());
    group.wait();
  });
}

#if !defined(TUZA_POLLER_KQUEUE)  // there closing the number does (kqueue_test.cpp)
// The descriptors that the pollers of this process watch.
std::size_t registrations() {
  std::size_t all = 0;
  for (const fs::directory_entry& fd : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(fd, gone) != "anon_inode:[eventpoll]") continue;
    std::ifstream info("/proc/self/fdinfo/" + fd.path().filename().string());
    for (std::string line; std::getline(info, line);) all += line.starts_with("tfd:") ? 1 : 0;
  }
  return all;
}

// The service manager keeps the socket: closing the runtime's number does not end the registration by itself.
TEST_F(UnixSocketTest, AListenerThatWasTakenOverIsNotWatchedAfterItsEnd) {
  run_with(1, [&] {
    const int managers = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::listen(managers, 1), 0);
    Listener(Listener::adopt(::dup(managers)).value()).close();  // there is a poller now
    const std::size_t before = registrations();
    {
      Listener ours = Listener::adopt(::dup(managers)).value();
      EXPECT_EQ(registrations(), before + 1);
    }
    EXPECT_EQ(registrations(), before);
    ::close(managers);
  });
}
#endif

TEST_F(UnixSocketTest, WhatDoesNotListenIsNotTakenOver) {
  run_with(1, [&] {
    const long datagram = sys::invoke(SYS_socket, AF_INET, SOCK_DGRAM, 0);
    EXPECT_TRUE(is(Listener::adopt(static_cast<int>(datagram)), std::errc::wrong_protocol_type));
    const long idle = sys::invoke(SYS_socket, AF_INET, SOCK_STREAM, 0);
    EXPECT_TRUE(is(Listener::adopt(static_cast<int>(idle)), std::errc::invalid_argument));
    const long file = sys::invoke(SYS_openat, -100, "/dev/null", 0);
    EXPECT_TRUE(is(Listener::adopt(static_cast<int>(file)), std::errc::not_a_socket));
    EXPECT_TRUE(is(Listener::adopt(999'999), std::errc::bad_file_descriptor));
  });
}

}  // namespace
}  // namespace tuza::net::testing
