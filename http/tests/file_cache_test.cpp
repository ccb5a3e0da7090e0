// The cache of small files: what it holds, how it notices changes, and that its bounds are bounds.
#include <tuza/http/files/file_cache.h>

#include <tuza/http/file_server.h>
#include <tuza/http/files/file_store.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/request_cases.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using namespace std::chrono_literals;
using tuza::testing::run_with;
using Kind = FoundFile::Kind;

std::unique_ptr<CachedFile> file_of(std::string path, std::size_t bytes) {
  auto file = std::make_unique<CachedFile>();
  file->path = std::move(path);
  file->content.assign(bytes, 'x');
  return file;
}

constexpr FileCache::Limits kSmall{
    .bytes_max = 20'000, .entries_max = 8, .file_bytes_max = 20'000, .age_max = 1s};

TEST(FileCacheTest, HoldsWhatWasPutInUntilItIsRemovedOrReplaced) {
  FileCache cache(kSmall);
  EXPECT_FALSE(cache.find("a"));
  EXPECT_EQ(cache.insert(file_of("a", 10))->content.size(), 10u);
  EXPECT_EQ(cache.find("a")->content.size(), 10u);
  EXPECT_FALSE(cache.find("A"));
  {
    const FileCache::Pin old = cache.find("a");
    EXPECT_EQ(cache.insert(file_of("a", 20))->content.size(), 20u);
    EXPECT_EQ(cache.find("a")->content.size(), 20u);
    EXPECT_EQ(old->content.size(), 10u) << "who sends it goes on";
    EXPECT_EQ(cache.entries(), 1u);
  }
  cache.remove("a");
  cache.remove("never there");
  EXPECT_FALSE(cache.find("a"));
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(FileCacheTest, AgeCountsFromTheLastLook) {
  FileCache cache(kSmall);
  const FileCache::Pin pin = cache.insert(file_of("a", 1));
  pin->looked_at_ns = 1'000'000'000;
  EXPECT_TRUE(cache.is_fresh(*pin, 2'000'000'000));
  EXPECT_FALSE(cache.is_fresh(*pin, 2'000'000'001));
}

TEST(FileCacheTest, BoundsHoldAlsoForWhatIsStillBeingSent) {
  FileCache cache(kSmall);
  for (int i = 0; i < 100; ++i) {
    (void)cache.insert(file_of(std::to_string(i), 100));
    ASSERT_LE(cache.entries(), kSmall.entries_max);
    ASSERT_LE(cache.bytes(), kSmall.bytes_max);
  }
  EXPECT_EQ(cache.entries(), kSmall.entries_max) << "no more went than had to";
  EXPECT_TRUE(cache.find("99"));
  EXPECT_FALSE(cache.insert(file_of("large", kSmall.bytes_max))) << "it and its overhead are too much";
  EXPECT_TRUE(cache.find("99")) << "what does not fit drives nothing out";
  {
    // Slow readers of many versions of one file.
    std::vector<FileCache::Pin> readers;
    while (FileCache::Pin pin = cache.insert(file_of("replaced", 3'000))) {
      readers.push_back(std::move(pin));
      ASSERT_LE(cache.bytes(), kSmall.bytes_max);
    }
    EXPECT_GT(readers.size(), 3u);
    EXPECT_FALSE(cache.insert(file_of("other", 3'000)));
    for (const FileCache::Pin& pin : readers) EXPECT_EQ(pin->content, std::string(3'000, 'x'));
  }
  EXPECT_TRUE(cache.insert(file_of("other", 3'000))) << "the readers have gone";
}

TEST(FileCacheTest, WhatIsUsedOutlivesWhatIsNot) {
  FileCache cache(kSmall);
  for (int i = 0; i < 50; ++i) {
    (void)cache.insert(file_of("once " + std::to_string(i), 1));
    if (i == 0) (void)cache.insert(file_of("often", 1));
    ASSERT_TRUE(cache.find("often")) << i;
  }
}

TEST(FileCacheTest, ManyGoroutinesAtOnce) {
  run_with(4, [] {
    FileCache cache({.bytes_max = 100'000, .entries_max = 16, .file_bytes_max = 10'000, .age_max = 1s});
    WaitGroup group;
    std::atomic<int> hits{0};
    for (unsigned seed = 1; seed <= 8; ++seed) {
      group.go([&, seed] {
        std::minstd_rand random(seed);
        for (int i = 0; i < 3'000; ++i) {
          const std::size_t number = random() % 40;
          const std::string path = "f" + std::to_string(number);
          if (random() % 50 == 0) cache.remove(path);
          FileCache::Pin pin = cache.find(path);
          if (pin) hits.fetch_add(1, std::memory_order_relaxed);
          if (!pin) pin = cache.insert(file_of(path, 100 + number));
          if (!pin) continue;
          ASSERT_EQ(pin->path, path);
          ASSERT_EQ(pin->content, std::string(100 + number, 'x'));
        }
      });
    }
    group.wait();
    EXPECT_GT(hits.load(), 0);
    EXPECT_LE(cache.bytes(), 100'000u);
    EXPECT_LE(cache.entries(), 16u);
  });
}

// A store that caches at once, and believes what it knows for `age`.
std::unique_ptr<FileStore> store_of(const Folder& folder, std::chrono::nanoseconds age) {
  return std::make_unique<FileStore>(
      OpenFile(static_cast<int>(open_folder(folder.root().string()))),
      FileCache::Limits{
          .bytes_max = 1 << 20, .entries_max = 100, .file_bytes_max = 1000, .age_max = age, .settled = 0ns},
      FileRules{.cache_control = "no-cache"});
}
std::string content(FoundFile found) {
  return found.kind == Kind::kCached ? found.cached->content
                                     : "kind " + std::to_string(static_cast<int>(found.kind));
}

TEST(FileStoreTest, EveryChangeIsNoticedAtTheNextLook) {
  const Folder folder;
  const std::unique_ptr<FileStore> store = store_of(folder, 0ns);  // looks whenever the clock has moved
  const fs::path path = folder.root() / "a.txt";
  const auto look = [&] { return content(store->find("a.txt")); };
  EXPECT_EQ(look(), kText);
  EXPECT_EQ(look(), kText);
  Folder::write(path, "longer than before, in place");
  EXPECT_EQ(look(), "longer than before, in place");
  Folder::write(folder.root() / "new", "shall be renamed, the same size");
  fs::rename(folder.root() / "new", path);
  EXPECT_EQ(look(), "shall be renamed, the same size");
  const fs::perms before = fs::status(path).permissions();
  fs::permissions(path, fs::perms::none);
  {
    const WithoutPrivileges nobody;
    EXPECT_EQ(store->find("a.txt").error, -EACCES);
  }
  fs::permissions(path, before);
  fs::remove(path);
  EXPECT_EQ(store->find("a.txt").error, -ENOENT);
  fs::create_symlink("../secret.txt", path);
  EXPECT_EQ(store->find("a.txt").error, -EXDEV);
  fs::remove(path);
  mkfifo(path.c_str(), 0666);
  EXPECT_EQ(store->find("a.txt").error, -ENXIO);
}

TEST(FileStoreTest, WhatIsKnownCountsForItsTimeAndOnlySmallFilesAreKept) {
  const Folder folder;
  const std::unique_ptr<FileStore> store = store_of(folder, 1h);
  EXPECT_EQ(content(store->find("a.txt")), kText);
  EXPECT_EQ(store->find("a.txt").modified_s(), 784111777);
  EXPECT_EQ(store->find("a.txt.gz", true).error, -ENOENT);
  EXPECT_EQ(store->find("b.txt").error, -ENOENT);
  Folder::write(folder.root() / "a.txt", "changed");
  Folder::write(folder.root() / "a.txt.gz", "made");
  Folder::write(folder.root() / "b.txt", "made");
  EXPECT_EQ(content(store->find("a.txt")), kText);
  EXPECT_EQ(store->find("a.txt.gz", true).error, -ENOENT) << "absence is remembered";
  EXPECT_EQ(content(store->find("b.txt")), "made") << "but not for paths that a client may invent";
  Folder::write(folder.root() / "limit", std::string(1000, 'x'));
  Folder::write(folder.root() / "beyond", std::string(1001, 'x'));
  EXPECT_EQ(store->find("limit").kind, Kind::kCached);
  EXPECT_EQ(store->find("beyond").kind, Kind::kOpen);
  EXPECT_EQ(store->find("dir").kind, Kind::kFolder);
}

// Within a tick of the file system's clock a second change would leave no trace.
TEST(FileStoreTest, AVersionThatHasNotSettledIsNotKept) {
  const Folder folder;
  FileStore store(
      OpenFile(static_cast<int>(open_folder(folder.root().string()))),
      {.bytes_max = 1 << 20, .entries_max = 100, .file_bytes_max = 1000, .age_max = 1h, .settled = 1h}, {});
  EXPECT_EQ(store.find("a.txt").kind, Kind::kOpen)
      << "its content is old, but somebody has just changed its time";
}

// The same request, answered from memory and from the disk. The file is of the source tree: it has settled.
TEST(FileServerCacheTest, AnswersAreTheSameWithAndWithoutCache) {
  const fs::path cases(request_cases_file());
  const std::string folder = cases.parent_path().string(), get = "GET /" + cases.filename().string();
  const FileServer cached(folder, {.cache_control = "no-cache"}),
      direct(folder, {.cache_control = "no-cache", .cache_bytes_max = 0});
  const std::string etag(call(direct, get).header("ETag").value());
  const std::vector<HeaderFields> requests{
      {},
      {{"If-None-Match", etag}},
      {{"If-Match", "\"x\""}},
      {{"Range", "bytes=5-104"}},
      {{"Range", "bytes=-7"}},
      {{"Range", "bytes=99999999-"}},
      {{"If-Range", "\"x\""}, {"Range", "bytes=0-0"}},
  };
  for (const bool sets_fields : {false, true}) {
    const auto handler = [sets_fields](const FileServer& files) {
      return [&files, sets_fields](Request& req, ResponseWriter& res) {
        if (sets_fields) res.set_header("X-Before", "1");
        files(req, res);
      };
    };
    for (const HeaderFields& fields : requests) {
      const CallResult a = call(handler(cached), get, {.headers = fields}),
                       b = call(handler(direct), get, {.headers = fields});
      const std::string told = fields.empty() ? "plain" : fields.back().first + ": " + fields.back().second;
      EXPECT_EQ(a.status, b.status) << told;
      EXPECT_EQ(a.body, b.body) << told;
      std::vector<std::pair<std::string, std::string>> in_a(a.headers.begin(), a.headers.end()),
          in_b(b.headers.begin(), b.headers.end());
      std::sort(in_a.begin(), in_a.end());
      std::sort(in_b.begin(), in_b.end());
      EXPECT_EQ(in_a, in_b) << told;
    }
  }
  const std::uint64_t before = reads();
  const CallResult hit = call(cached, get);
  EXPECT_EQ(reads() - before, 1u) << "only the one that reads the count";
  EXPECT_EQ(hit.status, 200);
}

}  // namespace
}  // namespace tuza::http::testing
