// Files: written data is read back, and every error names the operation, the file and the reason.
#include <tuza/netpoll/file.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tuza/netpoll/filesystem.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tuza::testing {
namespace {

std::string read_some(File& file, std::size_t at_most) {
  std::string text(at_most, '\0');
  const Result<std::size_t> n = file.read(std::span(text));
  if (!n) return "<" + n.error().message() + ">";
  text.resize(*n);
  return text;
}

class FileTest : public WithProcs {};
TUZA_WITH_PROCS(FileTest);

// The example in file.h.
Result<void> note(std::string_view path, std::string_view line) {
  auto log = File::open(path, {.read = false, .append = true, .create = true});
  if (!log) return std::unexpected(log.error());
  if (auto written = log->write_all(line); !written) return written;
  return log->close();
}

TEST_P(FileTest, WhatIsAppendedStandsAtTheEnd) {
  const TemporaryDirectory directory;
  const std::string path = directory / "visits.log";
  run_with(GetParam(), [&path] {
    EXPECT_TRUE(note(path, "one\n"));
    EXPECT_TRUE(note(path, "two\n"));
    EXPECT_EQ(message(note(path + "/x", "three\n")), "open " + path + "/x: Not a directory");
    File file = File::open(path, {.append = true}).value();
    EXPECT_TRUE(file.seek(1)) << "does not matter";
    EXPECT_TRUE(file.write_all("three\n"));
  });
  EXPECT_EQ(file_contents(path), "one\ntwo\nthree\n");
}

TEST_P(FileTest, WhatIsWrittenIsReadAgain) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    File file = File::create(directory / "a").value();
    EXPECT_EQ(file.path(), directory / "a");
    EXPECT_TRUE(file.write_all("abcdefgh"));
    EXPECT_EQ(read_some(file, 8), "") << "the position is at the end";
    EXPECT_EQ(file.seek(2).value(), 2u);
    EXPECT_EQ(read_some(file, 3), "cde");
    EXPECT_EQ(file.seek(0, File::Whence::kCurrent).value(), 5u);
    EXPECT_EQ(file.seek(-1, File::Whence::kEnd).value(), 7u);
    EXPECT_EQ(read_some(file, 100), "h");
    EXPECT_EQ(message(file.seek(-1)), "seek " + (directory / "a") + ": Invalid argument");
    EXPECT_TRUE(file.write_all("")) << "nothing is done at once";
    EXPECT_TRUE(file.sync());
    EXPECT_TRUE(file.sync_data());
    EXPECT_TRUE(file.close());
  });
  EXPECT_EQ(file_contents(directory / "a"), "abcdefgh");
}

TEST_P(FileTest, ReadingAndWritingAtAnOffsetLeavesThePosition) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    File file = File::create(directory / "a").value();
    EXPECT_TRUE(file.pwrite_all("xyz", 3));
    std::array<char, 16> buffer{};
    EXPECT_EQ(file.pread(std::span(buffer), 0).value(), 6u) << "all there is";
    EXPECT_EQ(std::string_view(buffer.data(), 6), std::string_view("\0\0\0xyz", 6));
    EXPECT_EQ(file.pread(std::span(buffer).first(2), 4).value(), 2u);
    EXPECT_EQ(std::string_view(buffer.data(), 2), "yz");
    EXPECT_EQ(file.pread(std::span(buffer), 6).value(), 0u);
    EXPECT_EQ(file.seek(0, File::Whence::kCurrent).value(), 0u);
    const std::uint64_t too_far = std::uint64_t{1} << 63;
    EXPECT_EQ(message(file.pread(std::span(buffer), too_far)),
              "pread " + (directory / "a") + ": Invalid argument");
    EXPECT_EQ(message(file.pwrite_all("x", too_far)), "pwrite " + (directory / "a") + ": Invalid argument");
  });
}

TEST_P(FileTest, CreateEmptiesAndTruncateCutsOrAddsZeros) {
  const TemporaryDirectory directory;
  put_file(directory / "a", "old");
  run_with(GetParam(), [&directory] {
    File file = File::create(directory / "a").value();
    EXPECT_EQ(file.stat().value().size_bytes, 0u);
    EXPECT_TRUE(file.write_all("abcdef"));
    EXPECT_TRUE(file.truncate(2));
    EXPECT_TRUE(file.truncate(4));
  });
  EXPECT_EQ(file_contents(directory / "a"), std::string("ab\0\0", 4));
}

TEST_P(FileTest, StatTellsSizeTypePermissionsAndTime) {
  const TemporaryDirectory directory;
  put_file(directory / "a", "12345");
  ASSERT_EQ(::chmod((directory / "a").c_str(), 0640), 0);
  const std::array<timespec, 2> times{timespec{.tv_sec = 7, .tv_nsec = 1}, {.tv_sec = 1234, .tv_nsec = 5678}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (directory / "a").c_str(), times.data(), 0), 0);
  run_with(GetParam(), [&directory] {
    const FileInfo info = File::open(directory / "a").value().stat().value();
    EXPECT_EQ(info.type, FileType::kRegular);
    EXPECT_EQ(info.size_bytes, 5u);
    EXPECT_EQ(info.mode, 0640u);
    EXPECT_EQ(info.modified.time_since_epoch(), std::chrono::seconds(1234) + std::chrono::nanoseconds(5678));
    EXPECT_EQ(File::open(directory.path()).value().stat().value().type, FileType::kDirectory);
    EXPECT_EQ(File::open("/dev/null").value().stat().value().type, FileType::kCharacterDevice);
  });
}

TEST_P(FileTest, ReadAllTakesEverythingUpToItsLimit) {
  const TemporaryDirectory directory;
  std::string text(100'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  put_file(directory / "a", text);
  put_file(directory / "empty", "");
  run_with(GetParam(), [&] {
    File file = File::open(directory / "a").value();
    EXPECT_EQ(file.read_all().value(), text);
    EXPECT_EQ(file.read_all().value(), "") << "the position is at the end";
    ASSERT_TRUE(file.seek(99'990));
    EXPECT_EQ(file.read_all(10).value(), text.substr(99'990));
    ASSERT_TRUE(file.seek(0));
    EXPECT_EQ(file.read_all(100'000).value(), text);
    ASSERT_TRUE(file.seek(0));
    EXPECT_EQ(message(file.read_all(99'999)), "read " + (directory / "a") + ": File too large");
    ASSERT_TRUE(file.seek(0));
    EXPECT_EQ(file.read_all(SIZE_MAX).value(), text);
    EXPECT_EQ(File::open(directory / "empty").value().read_all(0).value(), "");
  });
}

TEST_P(FileTest, ReadAllReadsWhatDoesNotSayHowLongItIs) {
  const std::string by_other_means = file_contents("/proc/self/environ");
  run_with(GetParam(), [&by_other_means] {
    EXPECT_EQ(File::open("/proc/self/environ").value().read_all().value(), by_other_means);
    File zeros = File::open("/dev/zero").value();
    EXPECT_EQ(message(zeros.read_all(100'000)), "read /dev/zero: File too large");
    EXPECT_EQ(read_some(zeros, 3), std::string(3, '\0'));
  });
}

TEST_P(FileTest, PermissionsAreTheRequestedOnesLessTheUmask) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(027);
  run_with(GetParam(), [&directory] {
    EXPECT_EQ(File::create(directory / "a", 0777).value().stat().value().mode, 0750u);
    EXPECT_EQ(File::create(directory / "b").value().stat().value().mode, 0640u);
  });
  ::umask(before);
}

TEST_P(FileTest, OptionsThatContradictEachOtherAreRefused) {
  const TemporaryDirectory directory;
  put_file(directory / "a", "kept");
  run_with(GetParam(), [&directory] {
    for (const OpenOptions& options : {OpenOptions{.read = false}, OpenOptions{.truncate = true},
                                       OpenOptions{.read = false, .create = true}}) {
      EXPECT_EQ(message(File::open(directory / "a", options)),
                "open " + (directory / "a") + ": Invalid argument");
    }
    EXPECT_FALSE(File::open(directory / "a").value().write_all("x")) << "open for reading";
    EXPECT_EQ(message(File::open(directory / "a", {.read = false, .write = true}).value().read_all()),
              "read " + (directory / "a") + ": Bad file descriptor");
  });
  EXPECT_EQ(file_contents(directory / "a"), "kept");
}

TEST_P(FileTest, ErrorsNameTheOperationAndThePath) {
  const TemporaryDirectory directory;
  const std::string in_the_way = directory.path();
  run_with(GetParam(), [&] {
    const Result<File> missing = File::open(directory / "missing");
    ASSERT_FALSE(missing);
    EXPECT_TRUE(missing.error().is(std::errc::no_such_file_or_directory));
    EXPECT_EQ(missing.error().op(), "open");
    EXPECT_EQ(missing.error().subject(), directory / "missing");
    EXPECT_EQ(message(missing), "open " + (directory / "missing") + ": No such file or directory");
    EXPECT_EQ(message(File::create(in_the_way)), "open " + in_the_way + ": Is a directory");
    File opened = File::open(in_the_way).value();
    EXPECT_EQ(read_some(opened, 10), "<read " + in_the_way + ": Is a directory>");
    EXPECT_TRUE(opened.sync()) << "that is what a directory is opened for";
    const std::string long_name = directory / std::string(256, 'x');
    EXPECT_EQ(message(File::create(long_name)), "open " + long_name + ": File name too long");
    const std::string with_zero = (directory / "a") + '\0' + "b";
    EXPECT_TRUE(File::create(with_zero).error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::list(in_the_way).value().empty()) << "nothing was made by any of these";
  });
}

TEST_P(FileTest, AFullDiskIsAnError) {
  run_with(GetParam(), [] {
    File full = File::open("/dev/full", {.write = true}).value();
    const Result<void> written = full.write_all("x");
    EXPECT_EQ(message(written), "write /dev/full: No space left on device");
    EXPECT_TRUE(written.error().is(std::errc::no_space_on_device));
    EXPECT_EQ(message(full.pwrite_all("x", 5)), "pwrite /dev/full: No space left on device");
  });
}

// A file size limit simulates a disk that fills up in the middle of a write.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const struct rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    EXPECT_EQ(::sigaction(SIGXFSZ, &ignore, &action_before_), 0);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &now), 0);
  }
  ~SmallFiles() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    EXPECT_EQ(::sigaction(SIGXFSZ, &action_before_, nullptr), 0);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  struct rlimit before_{};
  struct sigaction action_before_{};
};

TEST_P(FileTest, AWriteThatEndsInTheMiddleSaysWhere) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  const std::string text(5000, 'x');
  run_with(GetParam(), [&] {
    const SmallFiles limit(4000);
    File file = File::create(path).value();
    EXPECT_EQ(message(file.write_all(text)),
              "write " + path + " (4000 of 5000 bytes written): File too large");
    EXPECT_EQ(file.seek(0, File::Whence::kCurrent).value(), 4000u);
    EXPECT_EQ(message(file.pwrite_all(text, 1000)),
              "pwrite " + path + " (3000 of 5000 bytes written): File too large");
  });
}

// While this object lives, no descriptor number is free.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const struct rlimit now{.rlim_cur = static_cast<rlim_t>(next_number()), .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~NoMoreDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  struct rlimit before_{};
};

TEST_P(FileTest, AFullTableOfDescriptorsIsAnErrorAndNoMore) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  run_with(GetParam(), [&] {
    File file = File::create(path).value();
    {
      const NoMoreDescriptors limit;
      const Result<File> refused = File::open(path);
      EXPECT_EQ(message(refused), "open " + path + ": Too many open files");
      EXPECT_TRUE(refused.error().is(std::errc::too_many_files_open));
      EXPECT_EQ(message(fs::list(directory.path())), "open " + directory.path() + ": Too many open files");
      EXPECT_TRUE(file.write_all("x")) << "what is open can be used";
      EXPECT_EQ(fs::stat(path).value().size_bytes, 1u) << "paths need no descriptor";
    }
    EXPECT_TRUE(File::open(path));
  });
}

TEST_P(FileTest, AClosedFileRefusesEverything) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  run_with(GetParam(), [&path] {
    File file = File::create(path).value();
    EXPECT_TRUE(file.write_all("x"));
    EXPECT_TRUE(file.close());
    std::array<std::byte, 4> buffer{};
    const auto closed = [](const auto& result) { return !result && result.error().closed(); };
    EXPECT_TRUE(closed(file.read(buffer)));
    EXPECT_TRUE(closed(file.read_all()));
    EXPECT_TRUE(closed(file.write_all("x")));
    EXPECT_TRUE(closed(file.pread(buffer, 0)));
    EXPECT_TRUE(closed(file.pwrite_all("x", 0)));
    EXPECT_TRUE(closed(file.seek(0)));
    EXPECT_TRUE(closed(file.truncate(0)));
    EXPECT_TRUE(closed(file.sync()));
    EXPECT_TRUE(closed(file.sync_data()));
    EXPECT_TRUE(closed(file.stat()));
    EXPECT_TRUE(closed(file.close()));
    EXPECT_EQ(message(file.read(buffer)), "read " + path + ": use of a closed connection, listener or file");
    EXPECT_EQ(file.path(), path);
    File never;
    EXPECT_TRUE(closed(never.read(buffer)));
    EXPECT_TRUE(closed(never.close()));
    EXPECT_EQ(never.path(), "");
  });
  EXPECT_EQ(file_contents(path), "x");
}

TEST_P(FileTest, AFileThatWasMovedIsTheOtherOne) {
  run_with(GetParam(), [] {
    const int first = next_number();
    File a = File::open("/dev/zero").value();
    EXPECT_EQ(::fcntl(first, F_GETFD), FD_CLOEXEC);
    File b = std::move(a);
    EXPECT_EQ(read_some(b, 1).size(), 1u);
    EXPECT_TRUE(a.stat().error().closed());  // NOLINT(bugprone-use-after-move)
    const int second = next_number();
    a = File::open("/dev/null").value();
    EXPECT_EQ(read_some(a, 1), "");
    a = std::move(b);
    EXPECT_EQ(read_some(a, 1).size(), 1u);
    EXPECT_TRUE(is_open(first));
    EXPECT_FALSE(is_open(second)) << "assigned over, and so closed";
    {
      const File ended = std::move(a);
    }
    EXPECT_FALSE(is_open(first)) << "destroyed, and so closed";
  });
}

TEST_P(FileTest, OfManyThatCreateExclusivelyOneWins) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    for (int round = 0; round < scaled(100); ++round) {
      const std::string path = directory / std::to_string(round);
      std::atomic<int> winners{0}, losers{0};
      WaitGroup group;
      for (int i = 0; i < 16; ++i) {
        group.go([&] {
          const Result<File> file = File::open(path, {.write = true, .exclusive = true});
          if (file) {
            winners.fetch_add(1);
          } else if (file.error().is(std::errc::file_exists)) {
            losers.fetch_add(1);
          }
        });
      }
      group.wait();
      EXPECT_EQ(winners.load(), 1);
      EXPECT_EQ(losers.load(), 15);
    }
  });
}

TEST_P(FileTest, GoroutinesReadAndWriteTheirPartsOfOneFileAtOnce) {
  constexpr std::size_t kBytes = 4096;
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  run_with(GetParam(), [&path] {
    File file = File::create(path).value();
    std::atomic<int> wrong{0};
    WaitGroup group;
    for (std::size_t part = 0; part < 64; ++part) {
      group.go([&file, &wrong, part] {
        std::string block(kBytes, '\0'), back(kBytes, '\0');
        for (int round = 0; round < scaled(100); ++round) {
          std::ranges::fill(block, static_cast<char>(part * 31 + static_cast<std::size_t>(round)));
          const bool right = file.pwrite_all(block, part * kBytes) &&
                             file.pread(std::span(back), part * kBytes).value_or(0) == kBytes &&
                             back == block;
          if (!right) wrong.fetch_add(1);
          if (round % 8 == 0) yield();
        }
      });
    }
    group.wait();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(file.stat().value().size_bytes, 64 * kBytes);
  });
}

TEST_P(FileTest, GoroutinesShareOnePositionWithoutLosingOrTearingAnything) {
  constexpr std::size_t kBytes = 100;
  constexpr int rounds = scaled(50);
  const TemporaryDirectory directory;
  run_with(GetParam(), [&] {
    File file = File::create(directory / "a").value();
    WaitGroup group;
    for (int writer = 0; writer < 64; ++writer) {
      group.go([&file, writer] {
        for (int i = 0; i < rounds; ++i) {
          EXPECT_TRUE(file.write_all(std::string(kBytes, static_cast<char>(writer))));
        }
      });
    }
    group.wait();
    ASSERT_TRUE(file.seek(0));
    std::array<std::atomic<int>, 64> seen{};
    for (int reader = 0; reader < 64; ++reader) {
      group.go([&file, &seen] {
        for (std::string block; !(block = read_some(file, kBytes)).empty();) {
          ASSERT_EQ(block, std::string(kBytes, block[0]));
          seen.at(static_cast<std::size_t>(block[0])).fetch_add(1);
        }
      });
    }
    group.wait();
    for (const std::atomic<int>& count : seen) EXPECT_EQ(count.load(), rounds);
  });
}

// The number of a closed file soon belongs to another file: here to one that is full of wrong bytes.
TEST_P(FileTest, AUserOfAClosedFileNeverReachesAnother) {
  const TemporaryDirectory directory;
  put_file(directory / "right", std::string(64, 'r'));
  put_file(directory / "wrong", std::string(64, 'w'));
  run_with(GetParam(), [&directory] {
    for (int round = 0; round < scaled(500); ++round) {
      File file = File::open(directory / "right").value();
      WaitGroup group;
      for (int i = 0; i < 4; ++i) {
        group.go([&file] {
          std::array<char, 64> buffer{};
          for (;;) {
            const Result<std::size_t> n = file.pread(std::span(buffer), 0);
            if (!n) {
              EXPECT_TRUE(n.error().closed()) << n.error().message();
              return;
            }
            ASSERT_EQ(std::string_view(buffer.data(), *n), std::string(64, 'r'));
            yield();
          }
        });
      }
      yield();
      EXPECT_TRUE(file.close());
      const File other = File::open(directory / "wrong").value();
      group.wait();
    }
  });
}

TEST_P(FileTest, APipeThatNobodyReadsIsAnErrorNotASignal) {
  const TemporaryDirectory directory;
  const std::string path = directory / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  run_with(GetParam(), [&path] {
    File both = File::open(path, {.write = true}).value();
    File writer = File::open(path, {.read = false, .write = true}).value();
    EXPECT_TRUE(writer.write_all("hello"));
    EXPECT_EQ(read_some(both, 100), "hello");
    EXPECT_EQ(message(both.seek(0)), "seek " + path + ": Illegal seek");
    EXPECT_TRUE(both.close());
    EXPECT_EQ(message(writer.write_all("x")), "write " + path + ": Broken pipe");
  });
}

TEST(File, WorksOnAThreadThatIsNoGoroutine) {
  const TemporaryDirectory directory;
  std::thread([&directory] {
    File file = File::create(directory / "a").value();
    EXPECT_TRUE(file.write_all("abc"));
    EXPECT_TRUE(file.seek(0));
    EXPECT_EQ(file.read_all().value(), "abc");
    EXPECT_TRUE(file.close());
  }).join();
}

}  // namespace
}  // namespace tuza::testing
