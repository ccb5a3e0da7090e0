// Files that block the thread: the goroutine waits with it, the others do not.
#include <tuza/netpoll/file.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza::testing {
namespace {

using namespace std::chrono_literals;
using net::testing::wait_until_parked;

constexpr OpenOptions kWriteOnly{.read = false, .write = true};

// Both ends of a named pipe.
class Fifo {
 public:
  explicit Fifo(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    // Opened for both, the pipe does not wait for another end, and neither do the opens that follow.
    const File both = File::open(path, {.write = true}).value();
    reader_number = next_number();
    reader = std::make_unique<File>(File::open(path).value());
    writer = File::open(path, kWriteOnly).value();
  }
  std::unique_ptr<File> reader;
  int reader_number = -1;
  File writer;
};

std::string read_some(File& file) {
  std::array<char, 100> buffer{};
  const Result<std::size_t> n = file.read(std::span(buffer));
  return n ? std::string(buffer.data(), *n) : "<" + n.error().message() + ">";
}

// Yields until `n` other threads wait in the kernel, in system call `number`.
void wait_until_threads_are_in(long number, int n) {
  const auto count = [number] {
    const std::string self = std::to_string(::gettid());
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      // "0 0x5 ...": read(5, ...); "running" for a thread that does not wait.
      const bool there = file_contents(task.path() / "syscall").starts_with(std::to_string(number) + " ");
      if (there && task.path().filename() != self) ++threads;
    }
    return threads;
  };
  while (count() < n) sleep_for(1ms);
}

class FileBlockingTest : public WithProcs {};
TUZA_WITH_PROCS(FileBlockingTest);

TEST_P(FileBlockingTest, ReadingAnEmptyPipeBlocksOnlyTheGoroutineThatReads) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    Fifo fifo(directory / "fifo");
    WaitGroup group;
    group.go([&fifo] { EXPECT_EQ(read_some(*fifo.reader), "hello"); });
    wait_until_threads_are_in(SYS_read, 1);
    EXPECT_TRUE(fifo.writer.write_all("hello"));
    group.wait();
  });
}

TEST_P(FileBlockingTest, OpeningAPipeWaitsForItsOtherEndAndKeepsNobodyElse) {
  const TemporaryDirectory directory;
  const std::string path = directory / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  run_with(GetParam(), [&path] {
    WaitGroup group;
    group.go([&path] {
      File reader = File::open(path).value();
      EXPECT_EQ(read_some(reader), "hello");
    });
    wait_until_threads_are_in(SYS_openat, 1);
    EXPECT_TRUE(File::open(path, kWriteOnly).value().write_all("hello"));
    group.wait();
  });
}

TEST_P(FileBlockingTest, MoreThatBlockThanThereArePsKeepNobody) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    std::vector<std::unique_ptr<Fifo>> fifos;
    for (int i = 0; i < 8; ++i) fifos.push_back(std::make_unique<Fifo>(directory / std::to_string(i)));
    WaitGroup group;
    for (const auto& fifo : fifos) {
      group.go([&reader = *fifo->reader] { EXPECT_EQ(read_some(reader), "hello"); });
    }
    wait_until_threads_are_in(SYS_read, 8);
    WaitGroup others;
    std::atomic<int> turns{0};
    for (int i = 0; i < 100; ++i) {
      others.go([&turns] {
        for (int turn = 0; turn < 10; ++turn) {
          turns.fetch_add(1);
          yield();
        }
      });
    }
    others.wait();
    EXPECT_EQ(turns.load(), 1000);
    for (const auto& fifo : fifos) EXPECT_TRUE(fifo->writer.write_all("hello"));
    group.wait();
  });
}

TEST_P(FileBlockingTest, AWriteThatWaitsForRoomIsFinishedOnceThereIs) {
  const TemporaryDirectory directory;
  const std::string text(1'000'000, 'x');  // a pipe holds 65,536 bytes
  run_with(GetParam(), [&] {
    Fifo fifo(directory / "fifo");
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(fifo.writer.write_all(text));
      EXPECT_TRUE(fifo.writer.close());
    });
    wait_until_threads_are_in(SYS_write, 1);
    EXPECT_EQ(fifo.reader->read_all().value(), text);
    group.wait();
  });
}

TEST_P(FileBlockingTest, AQueuedReaderIsParkedAndRejectedByClose) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    Fifo fifo(directory / "fifo");
    std::atomic<int> closed{0}, got{0};
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        std::array<char, 100> buffer{};
        const Result<std::size_t> n = fifo.reader->read(std::span(buffer));
        (n ? got : closed).fetch_add(1);
        EXPECT_TRUE(n || n.error().closed());
      });
    }
    wait_until_parked(3, WaitReason::kSemaphore);
    wait_until_threads_are_in(SYS_read, 1);
    EXPECT_TRUE(fifo.reader->close()) << "does not wait for the one that reads";
    EXPECT_TRUE(is_open(fifo.reader_number)) << "the number is not free while it is used";
    yield_until([&closed] { return closed.load() == 3; });
    EXPECT_TRUE(fifo.writer.write_all("hello"));
    group.wait();
    EXPECT_EQ(got.load(), 1);
    EXPECT_FALSE(is_open(fifo.reader_number)) << "the last reader has closed it";
  });
}

TEST_P(FileBlockingTest, WaitingForAPipeIsNoDeadlock) {
  const TemporaryDirectory directory;
  std::thread outside;
  run_with(GetParam(), [&] {
    Fifo fifo(directory / "fifo");
    outside = std::thread([path = directory / "fifo"] {
      std::this_thread::sleep_for(100ms);
      const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      EXPECT_EQ(::write(fd, "hello", 5), 5);
      ::close(fd);
    });
    WaitGroup group;
    group.go([&fifo] { EXPECT_EQ(read_some(*fifo.reader), "hello"); });
    group.wait();
  });
  outside.join();
}

// Standard input may be a socket, which has no path that could be opened, or a pipe that does not block.
TEST_P(FileBlockingTest, AdoptsAnyOpenDescriptor) {
  run_with(GetParam(), [] {
    for (const int flags : {0, int{SOCK_NONBLOCK}}) {
      std::array<int, 2> ends{};
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | flags, 0, ends.data()), 0);
      File here = File::adopt(ends[0], "stdin").value();
      File there = File::adopt(ends[1], "peer").value();
      WaitGroup group;
      group.go([&] {
        sleep_for(std::chrono::milliseconds(5));
        EXPECT_TRUE(there.write_all("hello"));
        EXPECT_TRUE(there.close());
      });
      EXPECT_EQ(here.read_all().value(), "hello");
      group.wait();
      EXPECT_EQ(here.path(), "stdin");
      char byte = 0;
      EXPECT_EQ(here.pread(std::span(&byte, 1), 0).error().message(), "pread stdin: Illegal seek");
    }
    EXPECT_TRUE(File::adopt(999'999, "none").error().is(std::errc::bad_file_descriptor));
    EXPECT_TRUE(File::adopt(-1, "none").error().is(std::errc::bad_file_descriptor));
  });
}

}  // namespace
}  // namespace tuza::testing
