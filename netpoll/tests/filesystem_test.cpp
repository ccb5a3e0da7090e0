// Directories, and operations on files by path.
#include <tuza/netpoll/filesystem.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tuza::testing {
namespace {

class DirectoryTest : public WithProcs {};
TUZA_WITH_PROCS(DirectoryTest);
class FilesystemTest : public WithProcs {};
TUZA_WITH_PROCS(FilesystemTest);

TEST_P(DirectoryTest, ListsNamesWithTypes) {
  const TemporaryDirectory directory;
  put_file(directory / "file", "x");
  ASSERT_EQ(::mkdir((directory / "directory").c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo((directory / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("directory", (directory / "link").c_str()), 0);
  put_file(directory / ".hidden", "");
  run_with(GetParam(), [&directory] {
    std::map<std::string, FileType> seen;
    const std::vector<DirectoryEntry> entries = fs::list(directory.path()).value();
    for (const DirectoryEntry& entry : entries) {
      EXPECT_TRUE(seen.emplace(entry.name, entry.type).second) << entry.name << " twice";
    }
    const std::map<std::string, FileType> right{{"file", FileType::kRegular},
                                                {"directory", FileType::kDirectory},
                                                {"fifo", FileType::kFifo},
                                                {"link", FileType::kSymlink},
                                                {".hidden", FileType::kRegular}};
    EXPECT_EQ(seen, right);
    const std::vector<DirectoryEntry> devices = fs::list("/dev").value();
    EXPECT_NE(std::ranges::find_if(devices,
                                   [](const DirectoryEntry& entry) {
                                     return entry.name == "null" && entry.type == FileType::kCharacterDevice;
                                   }),
              devices.end());
  });
}

// The example in directory.h.
Result<void> queue_all(std::string_view path, std::set<std::string>& names) {
  auto directory = Directory::open(path);
  if (!directory) return std::unexpected(directory.error());
  for (;;) {
    auto entry = directory->next();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};
    if ((*entry)->type == FileType::kRegular) names.insert((*entry)->name);
  }
}

TEST_P(DirectoryTest, OfTenThousandEntriesEachIsSeenOnce) {
  const TemporaryDirectory directory;
  std::set<std::string> right;
  for (int i = 0; i < 10'000; ++i) {
    // Names of every length, so that the entries fill the buffer unevenly.
    const std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(i) % 250, 'x');
    const int fd = ::open((directory / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ::close(fd);
    right.insert(name);
  }
  run_with(GetParam(), [&] {
    std::set<std::string> seen;
    EXPECT_TRUE(queue_all(directory.path(), seen));
    EXPECT_EQ(seen, right);
    EXPECT_EQ(fs::list(directory.path()).value().size(), right.size());
  });
}

TEST_P(DirectoryTest, AnEmptyOneHasNoEntriesNowAndLater) {
  const TemporaryDirectory directory;
  run_with(GetParam(), [&directory] {
    Directory empty = Directory::open(directory.path()).value();
    EXPECT_FALSE(empty.next().value());
    EXPECT_FALSE(empty.next().value());
    Directory moved = std::move(empty);
    EXPECT_FALSE(moved.next().value());
    EXPECT_TRUE(empty.next().error().closed());  // NOLINT(bugprone-use-after-move)
  });
}

TEST_P(DirectoryTest, ErrorsNameThePath) {
  const TemporaryDirectory directory;
  put_file(directory / "file", "");
  run_with(GetParam(), [&directory] {
    EXPECT_EQ(message(Directory::open(directory / "none")),
              "open " + (directory / "none") + ": No such file or directory");
    EXPECT_EQ(message(fs::list(directory / "file")), "open " + (directory / "file") + ": Not a directory");
    ASSERT_TRUE(fs::make_directory(directory / "gone"));
    Directory gone = Directory::open(directory / "gone").value();
    ASSERT_TRUE(fs::remove(directory / "gone"));
    EXPECT_EQ(message(gone.next()), "list " + (directory / "gone") + ": No such file or directory");
  });
}

TEST_P(FilesystemTest, StatFollowsLinks) {
  const TemporaryDirectory directory;
  put_file(directory / "file", "1234567");
  ASSERT_EQ(::symlink("file", (directory / "link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (directory / "broken").c_str()), 0);
  run_with(GetParam(), [&directory] {
    const FileInfo info = fs::stat(directory / "link").value();
    EXPECT_EQ(info.type, FileType::kRegular);
    EXPECT_EQ(info.size_bytes, 7u);
    EXPECT_EQ(fs::stat(directory.path()).value().type, FileType::kDirectory);
    EXPECT_EQ(message(fs::stat(directory / "broken")),
              "stat " + (directory / "broken") + ": No such file or directory");
  });
}

TEST_P(FilesystemTest, RemoveTakesFilesLinksAndEmptyDirectories) {
  const TemporaryDirectory directory;
  put_file(directory / "file", "kept");
  ASSERT_EQ(::symlink("file", (directory / "link").c_str()), 0);
  run_with(GetParam(), [&directory] {
    EXPECT_TRUE(fs::remove(directory / "link"));
    File open = File::open(directory / "file").value();
    EXPECT_TRUE(fs::remove(directory / "file"));
    EXPECT_EQ(open.read_all().value(), "kept") << "for who has it open";
    EXPECT_EQ(message(fs::remove(directory / "file")),
              "remove " + (directory / "file") + ": No such file or directory");
    EXPECT_TRUE(fs::make_directory(directory / "d"));
    EXPECT_TRUE(fs::make_directory(directory / "d/e"));
    EXPECT_EQ(message(fs::remove(directory / "d")), "remove " + (directory / "d") + ": Directory not empty");
    EXPECT_TRUE(fs::remove(directory / "d/e"));
    EXPECT_TRUE(fs::remove(directory / "d"));
    EXPECT_TRUE(fs::list(directory.path()).value().empty());
  });
}

TEST_P(FilesystemTest, RenameReplacesWhatWasThere) {
  const TemporaryDirectory directory;
  put_file(directory / "new", "new");
  put_file(directory / "old", "old");
  run_with(GetParam(), [&directory] {
    const std::string from = directory / "new", to = directory / "old";
    EXPECT_TRUE(fs::rename(from, to));
    EXPECT_EQ(message(fs::rename(from, to)), "rename " + from + " to " + to + ": No such file or directory");
    EXPECT_TRUE(fs::make_directory(from));
    EXPECT_EQ(message(fs::rename(to, from)), "rename " + to + " to " + from + ": Is a directory");
  });
  EXPECT_EQ(file_contents(directory / "old"), "new");
}

// The example in filesystem.h.
Result<void> submit(const TemporaryDirectory& directory) {
  if (auto made = fs::make_directory(directory / "spool");
      !made && !made.error().is(std::errc::file_exists)) {
    return made;
  }
  return fs::rename(directory / "job", directory / "spool/job");
}

TEST_P(FilesystemTest, MakesDirectories) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(022);
  run_with(GetParam(), [&directory] {
    for (int i = 0; i < 2; ++i) {
      put_file(directory / "job", "x");
      EXPECT_EQ(message(submit(directory)), "fine");
    }
    EXPECT_EQ(fs::stat(directory / "spool").value().mode, 0755u);
    EXPECT_TRUE(fs::make_directory(directory / "private", 0700));
    EXPECT_EQ(fs::stat(directory / "private").value().mode, 0700u);
    EXPECT_EQ(message(fs::make_directory(directory / "spool")),
              "mkdir " + (directory / "spool") + ": File exists");
    EXPECT_EQ(message(fs::make_directory(directory / "a/b")),
              "mkdir " + (directory / "a/b") + ": No such file or directory");
  });
  ::umask(before);
}

TEST_P(FilesystemTest, APathWithAZeroInItIsRefused) {
  const TemporaryDirectory directory;
  put_file(directory / "a", "");
  run_with(GetParam(), [&directory] {
    const std::string path = (directory / "a") + '\0' + ".txt";
    EXPECT_TRUE(fs::stat(path).error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::remove(path).error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::rename(path, directory / "b").error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::rename(directory / "a", path).error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::make_directory(path).error().is(std::errc::invalid_argument));
    EXPECT_TRUE(fs::list(path).error().is(std::errc::invalid_argument));
    EXPECT_EQ(fs::list(directory.path()).value().size(), 1u);
  });
}

}  // namespace
}  // namespace tuza::testing
