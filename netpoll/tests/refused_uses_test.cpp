// The system calls of files, signals and local sockets, refused. (The calls of connections and of the poller
// are in refused_calls_test.cpp.)
#include <signal.h>
#include <sys/socket.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/filesystem.h>
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tests/refused_testing.h>

#include <filesystem>
#include <ostream>

namespace tuza::net::testing {
namespace {

// In a sequence of operations, the first error is thrown.

void expect_ok(const Result<void>& result) {
  if (!result) throw result.error();
}
template <class T>
T expect_ok(Result<T> result) {
  if (!result) throw result.error();
  return std::move(*result);
}

// A path at which nothing exists. The child of a test uses the path that its parent has chosen.
const std::string& some_path() {
  static const std::string path =
      std::filesystem::temp_directory_path() / ("tuza-refused-" + std::to_string(::getpid()));
  return path;
}

void use_files() {
  const std::string &folder = some_path(), path = folder + "/a", other = folder + "/b";
  expect_ok(tuza::fs::make_directory(folder));
  File file = expect_ok(File::open(path, {.write = true, .create = true}));
  expect_ok(file.write_all(bytes("hello")));
  expect_ok(file.pwrite_all(bytes("!"), 5));
  std::array<std::byte, 6> six;
  EXPECT_EQ(expect_ok(file.pread(six, 0)), 6u);
  EXPECT_EQ(expect_ok(file.seek(0)), 0u);
  EXPECT_EQ(expect_ok(file.read_all()), "hello!");
  expect_ok(file.truncate(3));
  EXPECT_EQ(expect_ok(file.stat()).size_bytes, 3u);
  expect_ok(file.sync());
  expect_ok(file.sync_data());
  expect_ok(file.close());
  expect_ok(tuza::fs::rename(path, other));
  EXPECT_EQ(expect_ok(tuza::fs::stat(other)).size_bytes, 3u);
  EXPECT_EQ(expect_ok(tuza::fs::list(folder)).size(), 1u);
  expect_ok(tuza::fs::remove(other));
  expect_ok(tuza::fs::remove(folder));
}

void use_unix_sockets() {
  const std::string& path = some_path();
  Listener listener = expect_ok(listen("unix", path));
  Conn client = expect_ok(dial("unix", path));
  TcpPair pair{std::move(client), expect_ok(listener.accept())};
  EXPECT_EQ(try_to_talk(pair, 0), kOk);
  listener.close();
}

void use_signals() {
  SignalSet signals = expect_ok(SignalSet::open({SIGUSR1, SIGUSR2}));
  ::kill(::getpid(), SIGUSR2);
  EXPECT_EQ(expect_ok(signals.wait()), SIGUSR2);
}

void adopt_a_socket() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::listen(fd, 1);
  const Result<Listener> listener = Listener::adopt(fd);
  if (listener) return;
  EXPECT_EQ(::dup(fd), -1) << "it is still open";
  throw listener.error();
}

void close_ends() {
  TcpPair pair = tcp_pair();
  expect_ok(pair.client.set_no_delay(true));
  expect_ok(pair.client.local_address());
  expect_ok(pair.client.remote_address());
  expect_ok(pair.client.close_write());
  EXPECT_EQ(read_to_end(pair.server), "");
}

void know_the_limit() {
  EXPECT_EQ(connections_allowed(), 1024 - 256u) << "what is usual, where the system does not say";
}

struct Using {
  const char* name;
  int number;
  int error;
  void (*use)();
  const char* fails = kOk;
};
std::ostream& operator<<(std::ostream& out, const Using& call) { return out << call.name; }
void use_without(const Using& call) {
  RefusedCalls kernel(call.number, call.error);
  run(RunOptions{.max_procs = 2}, [&] {
    Listener warm_up = listen_on_loopback();
    call.error == EINTR ? kernel.refuse_now_and_then() : kernel.refuse_from_now_on();
    std::string failed = kOk;
    try {
      call.use();
    } catch (const Error& error) {
      failed = who_failed(error, call.error);
    }
    EXPECT_EQ(failed, call.fails);
    expect_life(&warm_up, kernel);
  });
  end_child(kernel);
}

const Using kUsing[] = {
    {"openat", SYS_openat, EMFILE, use_files, "open"},
    {"openat_interrupted", SYS_openat, EINTR, use_files},
    {"write", SYS_write, EIO, use_files, "write"},
    {"write_interrupted", SYS_write, EINTR, use_files},
    {"read", SYS_read, EIO, use_files, "read"},
    {"read_interrupted", SYS_read, EINTR, use_files},
    {"pread64", SYS_pread64, EIO, use_files, "pread"},
    {"pread64_interrupted", SYS_pread64, EINTR, use_files},
    {"pwrite64", SYS_pwrite64, EIO, use_files, "pwrite"},
    {"pwrite64_interrupted", SYS_pwrite64, EINTR, use_files},
    {"lseek", SYS_lseek, EPERM, use_files, "seek"},
    {"fstat", SYS_fstat, ENOMEM, use_files, "stat"},
    {"ftruncate", SYS_ftruncate, EPERM, use_files, "truncate"},
    {"ftruncate_interrupted", SYS_ftruncate, EINTR, use_files},
    {"fsync", SYS_fsync, EIO, use_files, "sync"},
    {"fsync_interrupted", SYS_fsync, EINTR, use_files},
    {"fdatasync", SYS_fdatasync, EIO, use_files, "sync"},
    {"fdatasync_interrupted", SYS_fdatasync, EINTR, use_files},
    {"file_close", SYS_close, EIO, use_files, "close"},
    {"renameat2", SYS_renameat2, EPERM, use_files, "rename"},
    {"newfstatat", SYS_newfstatat, ENOMEM, use_files, "stat"},
    {"getdents64", SYS_getdents64, EPERM, use_files, "list"},
    {"getdents64_interrupted", SYS_getdents64, EINTR, use_files},
    {"mkdirat", SYS_mkdirat, EPERM, use_files, "mkdir"},
    {"unlinkat", SYS_unlinkat, EPERM, use_files, "remove"},
    // A directory that cannot be locked, a file that cannot be examined or removed: the socket works all the
    // same.
    {"unix_flock", SYS_flock, ENOLCK, use_unix_sockets},
    {"unix_flock_interrupted", SYS_flock, EINTR, use_unix_sockets},
    {"unix_openat", SYS_openat, EACCES, use_unix_sockets},
    {"unix_newfstatat", SYS_newfstatat, EPERM, use_unix_sockets},
    {"unix_unlinkat", SYS_unlinkat, EPERM, use_unix_sockets},
    {"unix_bind", SYS_bind, EPERM, use_unix_sockets, "listen"},
    {"pipe2", SYS_pipe2, EMFILE, use_signals, "signals"},
    {"rt_sigaction", SYS_rt_sigaction, EPERM, use_signals, "signals"},
    {"adopt_fcntl", SYS_fcntl, EPERM, adopt_a_socket, "adopt"},
    {"adopt_getsockopt", SYS_getsockopt, EPERM, adopt_a_socket, "adopt"},
    {"shutdown", SYS_shutdown, EPERM, close_ends, "shutdown"},
    {"prlimit64", SYS_prlimit64, EPERM, know_the_limit},
};
class RefusedUsing : public ::testing::TestWithParam<Using> {
 protected:
  RefusedUsing() { std::filesystem::remove_all(some_path()); }
  ~RefusedUsing() override { std::filesystem::remove_all(some_path()); }
};
INSTANTIATE_TEST_SUITE_P(Each, RefusedUsing, ::testing::ValuesIn(kUsing),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(RefusedUsing, TheCallerGetsAnErrorAndTheOthersKeepRunning) {
  const Ended ended = tuza::testing::in_fork([] { use_without(GetParam()); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::net::testing
