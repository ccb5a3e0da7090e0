// Files over HTTP: which files are served, under which conditions, and which part of them.
#include <tuza/http/file_server.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <tuza/http/files/file_path.h>
#include <tuza/http/files/http_date.h>
#include <tuza/http/files/open_beneath.h>
#include <tuza/http/files/ranges.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/no_more_descriptors.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <tuple>

namespace tuza::http::testing {
namespace {

using namespace std::chrono;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class FileServerTest : public WithProcs {};
TUZA_WITH_PROCS(FileServerTest);

TEST_P(FileServerTest, ServesFilesAndNothingElse) {
  const Folder folder;
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string()));
    struct Case {
      const char* path;
      int status;
      const char* body;
      const char* type;
    };
    const Case cases[] = {
        {"/a.txt", 200, kText.data(), "text/plain; charset=utf-8"},
        {"/a%2etxt?q=1", 200, kText.data(), "text/plain; charset=utf-8"},
        {"/empty.css", 200, "", "text/css; charset=utf-8"},
        {"/dir/", 200, "<p>dir", "text/html; charset=utf-8"},
        {"/dir/index.html", 200, "<p>dir", "text/html; charset=utf-8"},
        {"/dir/deep/no%20index", 200, "spaces", "application/octet-stream"},
        {"/inside.txt", 200, kText.data(), "text/plain; charset=utf-8"},
        {"/", 404, nullptr, nullptr},
        {"/dir/deep/", 404, nullptr, nullptr},
        {"/nothing", 404, nullptr, nullptr},
        {"/a.txt/", 404, nullptr, nullptr},
        {"/a.txt/b", 404, nullptr, nullptr},
        {"/outside.txt", 404, nullptr, nullptr},
        {"/absolute.txt", 404, nullptr, nullptr},
        {"/up/secret.txt", 404, nullptr, nullptr},
        {"/../secret.txt", 404, nullptr, nullptr},
        {"/dir/../../secret.txt", 404, nullptr, nullptr},
        {"/%2e%2e/secret.txt", 404, nullptr, nullptr},
        {"/..%2fsecret.txt", 404, nullptr, nullptr},
        {"/dir%2findex.html", 404, nullptr, nullptr},
        {"/a.txt%00", 404, nullptr, nullptr},
        {"/./a.txt", 404, nullptr, nullptr},
        {"//a.txt", 404, nullptr, nullptr},
        {"/.git/config", 404, nullptr, nullptr},
        {"/fifo", 404, nullptr, nullptr},
        {"/loop", 404, nullptr, nullptr},
    };
    for (const Case& c : cases) {
      const Response r = fetch(server.address(), ask(c.path));
      EXPECT_EQ(r.status, c.status) << c.path;
      if (c.body == nullptr) {
        EXPECT_EQ(r.body.find("secret"), std::string::npos) << c.path;
        continue;
      }
      EXPECT_EQ(r.body, c.body) << c.path;
      EXPECT_EQ(r.header("content-type"), c.type) << c.path;
      EXPECT_EQ(r.header("accept-ranges"), "bytes") << c.path;
    }
    const std::string long_name = "/" + std::string(300, 'x');
    EXPECT_EQ(fetch(server.address(), ask(long_name)).status, 404);
    const Response moved = fetch(server.address(), ask("/dir?a=b"));
    EXPECT_EQ(moved.status, 301);
    EXPECT_EQ(moved.header("location"), "/dir/?a=b");
    const Response posted = fetch(server.address(), post("/a.txt", "x"));
    EXPECT_EQ(posted.status, 405);
    EXPECT_EQ(posted.header("allow"), "GET, HEAD");
    const Response head = fetch(server.address(), ask("/a.txt", "Range: bytes=0-1\r\n", "HEAD"), true);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("content-length"), "20");
    EXPECT_EQ(head.body, "");
  });
}

TEST_P(FileServerTest, ConditionsInTheOrderOfRfc9110) {
  const Folder folder;
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string(), {.cache_control = "no-cache"}));
    const Response first = fetch(server.address(), ask("/a.txt"));
    const std::string etag = first.header("etag");
    EXPECT_TRUE(etag.starts_with('"')) << etag;  // strong: the file is old
    EXPECT_EQ(first.header("last-modified"), kModified);
    const std::string date(kModified), other = "\"other\"";
    const std::string earlier = "Sun, 06 Nov 1994 08:49:36 GMT";
    struct Case {
      std::string fields;
      int status;
    };
    const Case cases[] = {
        {"If-None-Match: " + etag, 304},
        {"If-None-Match: W/" + etag, 304},
        {"If-None-Match: " + other + " , " + etag, 304},
        {"If-None-Match: " + other + "\r\nIf-None-Match: " + etag, 304},
        {"If-None-Match: *", 304},
        {"If-None-Match: " + other, 200},
        {"If-None-Match: nonsense", 200},
        {"If-Modified-Since: " + date, 304},
        {"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT", 304},
        {"If-Modified-Since: Sun Nov  6 08:49:37 1994", 304},
        {"If-Modified-Since: " + earlier, 200},
        {"If-Modified-Since: yesterday", 200},
        {"If-None-Match: " + other + "\r\nIf-Modified-Since: " + date, 200},  // the date is ignored
        {"If-Match: " + etag, 200},
        {"If-Match: *", 200},
        {"If-Match: W/" + etag, 412},  // strong comparison
        {"If-Match: " + other, 412},
        {"If-Match: " + etag + "\r\nIf-Unmodified-Since: " + earlier, 200},
        {"If-Unmodified-Since: " + date, 200},
        {"If-Unmodified-Since: " + earlier, 412},
        {"If-Unmodified-Since: nonsense", 200},
        {"If-Match: " + other + "\r\nIf-None-Match: " + etag, 412},
        {"If-Match: " + etag + "\r\nIf-None-Match: " + etag, 304},
        {"If-None-Match: " + etag + "\r\nRange: bytes=0-1", 304},
        {"Range: bytes=0-1\r\nIf-Range: " + etag, 206},
        {"Range: bytes=0-1\r\nIf-Range: W/" + etag, 200},
        {"Range: bytes=0-1\r\nIf-Range: " + other, 200},
        {"Range: bytes=0-1\r\nIf-Range: " + date, 200},  // the date has been set, and may be again
        {"Range: bytes=0-1\r\nIf-Range: " + earlier, 200},
        {"Range: bytes=99-\r\nIf-Range: " + other, 200},
    };
    for (const Case& c : cases) {
      const Response r = fetch(server.address(), ask("/a.txt", c.fields + "\r\n"));
      EXPECT_EQ(r.status, c.status) << c.fields;
      if (c.status == 412) continue;
      EXPECT_EQ(r.header("etag"), etag) << c.fields;
      EXPECT_EQ(r.header("cache-control"), "no-cache") << c.fields;
      EXPECT_EQ(r.body, c.status == 200 ? kText : c.status == 206 ? "01" : "") << c.fields;
    }
    // Just written, and too large for a tag of the bytes that are sent: it is weak, and no basis for joining ranges.
    Folder::write(folder.root() / "new.txt", std::string(70'000, 'n'));
    const Response young = fetch(server.address(), ask("/new.txt"));
    EXPECT_TRUE(young.header("etag").starts_with("W/\""));
    EXPECT_EQ(
        fetch(server.address(),
              ask("/new.txt", "Range: bytes=0-0\r\nIf-Range: " + young.header("last-modified") + "\r\n"))
            .status,
        200);
    // A new version has a new tag.
    Folder::write(folder.root() / "a.txt", "01234567890123456789");
    Folder::set_time(folder.root() / "a.txt", 784111778);
    EXPECT_EQ(fetch(server.address(), ask("/a.txt", "If-None-Match: " + etag + "\r\n")).status, 200);
  });
}

TEST_P(FileServerTest, Ranges) {
  const Folder folder;
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string(), {.cache_control = "max-age=60"}));
    struct Case {
      const char *range, *body, *content_range;
    };
    const Case cases[] = {
        {"bytes=0-4", "01234", "bytes 0-4/20"},
        {"bytes=5-5", "5", "bytes 5-5/20"},
        {"bytes=18-", "ij", "bytes 18-19/20"},
        {"bytes=-3", "hij", "bytes 17-19/20"},
        {"BYTES=18-99", "ij", "bytes 18-19/20"},
        {"bytes=-99", kText.data(), "bytes 0-19/20"},
        {"bytes=0-0,99-", "0", "bytes 0-0/20"},
        {"bytes= ,1-2 ,", "12", "bytes 1-2/20"},
        {"bytes=19-18446744073709551615", "j", "bytes 19-19/20"},
        {"bytes=19-99999999999999999999999", "j", "bytes 19-19/20"},
    };
    for (const Case& c : cases) {
      const Response r = fetch(server.address(), ask("/a.txt", "Range: " + std::string(c.range) + "\r\n"));
      EXPECT_EQ(r.status, 206) << c.range;
      EXPECT_EQ(r.body, c.body) << c.range;
      EXPECT_EQ(r.header("content-range"), c.content_range) << c.range;
      EXPECT_EQ(r.header("content-type"), "text/plain; charset=utf-8") << c.range;
      EXPECT_EQ(r.header("cache-control"), "max-age=60") << c.range;
    }
    for (const char* range : {"bytes=20-", "bytes=-0", "bytes=20-30,99999999999999999999-"}) {
      const Response r = fetch(server.address(), ask("/a.txt", "Range: " + std::string(range) + "\r\n"));
      EXPECT_EQ(r.status, 416) << range;
      EXPECT_EQ(r.header("content-range"), "bytes */20") << range;
      for (const char* of_the_file : {"cache-control", "etag", "last-modified"}) {
        EXPECT_FALSE(r.has(of_the_file)) << range << " " << of_the_file;
      }
    }
    for (const char* range : {"lines=0-1", "bytes=", "bytes", "bytes=-", "bytes=3-2", "bytes=a-b",
                              "bytes=1-2,x", "bytes=+1-2", "bytes=0-19,0-19",
                              "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,"
                              "10-10,11-11,12-12,13-13,14-14,15-15,16-16"}) {
      const Response r = fetch(server.address(), ask("/a.txt", "Range: " + std::string(range) + "\r\n"));
      EXPECT_EQ(r.status, 200) << range;
      EXPECT_EQ(r.body, kText) << range;
    }
    EXPECT_EQ(fetch(server.address(), ask("/empty.css", "Range: bytes=0-1\r\n")).status, 200);
    const Response parts = fetch(server.address(), ask("/a.txt", "Range: bytes=0-1, -2, 50-60, 5-7\r\n"));
    ASSERT_EQ(parts.status, 206);
    const std::string type = parts.header("content-type"), prefix = "multipart/byteranges; boundary=";
    ASSERT_TRUE(type.starts_with(prefix)) << type;
    const std::string line = "\r\n--" + type.substr(prefix.size());
    const auto part = [&](std::string_view range, std::string_view text) {
      return line + "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes " +
             std::string(range) + "/20\r\n\r\n" + std::string(text);
    };
    EXPECT_EQ(parts.body, part("0-1", "01") + part("18-19", "ij") + part("5-7", "567") + line + "--\r\n");
    EXPECT_FALSE(parts.has("content-range"));
  });
}

TEST_P(FileServerTest, ASmallFirstRangeDoesNotMakeTheOthersSlow) {
  const Folder folder;
  const std::string large(200'000, 'x');
  Folder::write(folder.root() / "large", large);
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string()));
    const std::uint64_t before = reads();
    const Response parts = fetch(server.address(), ask("/large", "Range: bytes=0-0,2-\r\n"));
    EXPECT_LT(reads() - before, 10'000u) << "one for each byte";
    EXPECT_EQ(parts.status, 206);
    EXPECT_NE(parts.body.find(large.substr(2) + "\r\n--"), std::string::npos);
  });
}

TEST_P(FileServerTest, LargeFilesAreStreamedAndAShrinkingOneClosesTheConnection) {
  const Folder folder;
  std::string large(8 << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  Folder::write(folder.root() / "large", large);
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string()));
    EXPECT_EQ(fetch(server.address(), ask("/large")).body, large);
    const Response end = fetch(server.address(), ask("/large", "Range: bytes=8000000-\r\n"));
    EXPECT_EQ(end.body, large.substr(8'000'000));
    // The sockets' buffers cannot hold all of it: the server is in the middle when the file is truncated.
    RawClient client(server.address());
    client.send(ask("/large") + ask("/a.txt"));
    client.read_until([&] { return client.received().size() > 1000; });
    fs::resize_file(folder.root() / "large", 1 << 20);
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
    EXPECT_GT(client.received().size(), std::size_t{1} << 20);
    EXPECT_LT(client.received().size(), large.size());
    EXPECT_EQ(client.received().find(kText),
              std::string::npos);  // no second response in place of the rest
  });
}

// The last descriptors are for clients that must be answered while all others wait.
TEST_P(FileServerTest, LeavesTheLastDescriptorsToOthers) {
  const Folder folder;
  run_with(GetParam(), [&] {
    TestServer server(FileServer(folder.root().string(), {.cache_bytes_max = 0}));
    const RawClient client(server.address());
    EXPECT_EQ(fetch(server.address(), ask("/a.txt")).status, 200);
    {
      const net::testing::NoMoreDescriptors few(10);
      EXPECT_EQ(fetch(server.address(), ask("/a.txt")).status, 503);
      EXPECT_EQ(fetch(server.address(), ask("/nothing")).status, 404);
    }
    EXPECT_EQ(fetch(server.address(), ask("/a.txt")).status, 200);
  });
}

constexpr std::array kLinkedPaths{"inside.txt",
                                  "to_dir",
                                  "to_dir/index.html",
                                  "to_deep/no index",
                                  "to_link/deep/back",
                                  "dir/self/self/index.html",
                                  "dir/around/index.html",
                                  "dir/around",
                                  "dangling",
                                  "out_and_in",
                                  "absolute_inside",
                                  "file_as_folder",
                                  "to_fifo",
                                  "chain1",
                                  "chain40",
                                  "chain41",
                                  "to_deep",
                                  ".",
                                  "dir",
                                  "dir/deep",
                                  "loop",
                                  "loop/a.txt",
                                  "up",
                                  "outside.txt"};

// systemd's RestrictSUIDSGID, for one, takes openat2 away; links inside the folder must go on to work.
TEST(FileServerFoldersTest, LinksAreFollowedStepByStepAsByOneCall) {
  const Folder folder;
  const OpenFile root(static_cast<int>(open_folder(folder.root().string())));
  ASSERT_GE(root.fd(), 0);
  fs::create_directory_symlink("dir", folder.root() / "to_dir");
  fs::create_directory_symlink("./dir/deep/", folder.root() / "to_deep");
  fs::create_directory_symlink("to_dir", folder.root() / "to_link");
  fs::create_symlink("../../to_link//index.html", folder.root() / "dir/deep/back");
  fs::create_directory_symlink(".", folder.root() / "dir/self");
  fs::create_directory_symlink("deep/..", folder.root() / "dir/around");
  fs::create_symlink("nothing", folder.root() / "dangling");
  fs::create_symlink("../root/a.txt", folder.root() / "out_and_in");
  fs::create_symlink((folder.root() / "a.txt").string(), folder.root() / "absolute_inside");
  fs::create_symlink("a.txt/", folder.root() / "file_as_folder");
  fs::create_symlink("fifo", folder.root() / "to_fifo");
  std::string last = "a.txt";
  for (int i = 1; i <= 41; ++i) {
    fs::create_symlink(last, folder.root() / ("chain" + std::to_string(i)));
    last = "chain" + std::to_string(i);
  }
  // The same file, or the same error.
  const auto result = [&](auto open, const char* path, int flags) {
    const long fd = open(root.fd(), path, flags);
    struct stat info{};
    if (fd < 0) return "error " + std::to_string(-fd);
    EXPECT_EQ(OpenFile(static_cast<int>(fd)).stat(info), 0);
    return std::to_string(info.st_ino);
  };
  const auto look = [&](auto stat, const char* path) {
    struct stat info{};
    const long error = stat(root.fd(), path, info);
    return std::to_string(error < 0 ? error : static_cast<long>(info.st_ino));
  };
  for (const int flags : {0, O_DIRECTORY}) {
    for (const char* path : kLinkedPaths) {
      EXPECT_EQ(result(open_beneath_by_steps, path, flags), result(open_beneath, path, flags))
          << path << " " << flags;
      EXPECT_EQ(look(stat_beneath_by_steps, path), look(stat_beneath, path)) << path;
    }
  }
  for (const char* path :
       {"inside.txt", "to_link/deep/back", "dir/self/self/index.html", "dir/around/index.html", "chain40"}) {
    EXPECT_FALSE(result(open_beneath_by_steps, path, 0).starts_with("error")) << path;
  }
  for (const char* path : {"out_and_in", "absolute_inside", "chain41", "file_as_folder"}) {
    EXPECT_TRUE(result(open_beneath_by_steps, path, 0).starts_with("error")) << path;
  }
}

// A name on the way is a folder and a link out of the root by turns.
TEST(FileServerFoldersTest, NoStepIsDeceivedByALinkThatReplacesAFolder) {
  const Folder folder;
  const fs::path top = folder.root();
  const OpenFile root(static_cast<int>(open_folder(top.string())));
  fs::create_directories(top / "way");
  fs::create_directories(top.parent_path() / "elsewhere");
  Folder::write(top / "way/file", "inside");
  Folder::write(top.parent_path() / "elsewhere/file", "outside");
  fs::create_directory_symlink(top.parent_path() / "elsewhere", top / "link");
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done)
      ::renameat2(AT_FDCWD, (top / "way").c_str(), AT_FDCWD, (top / "link").c_str(), RENAME_EXCHANGE);
  });
  int found = 0, refused = 0;
  for (int i = 0; i < 100'000 && (found < 1000 || refused < 1000); ++i) {
    OpenFile file(static_cast<int>(open_beneath_by_steps(root.fd(), "way/file")));
    std::array<char, 16> text{"inside"};
    const bool opened = file.fd() >= 0 && file.pread(text, 0) >= 0;
    (opened ? found : refused) += 1;
    EXPECT_STREQ(text.data(), "inside");
    struct stat info{};
    info.st_size = 6;
    std::ignore = stat_beneath_by_steps(root.fd(), "way/file", info);
    EXPECT_EQ(info.st_size, 6);
  }
  done = true;
  swapper.join();
  EXPECT_GT(found, 0);
  EXPECT_GT(refused, 0);
}

TEST(FileServerFoldersTest, StepByStepAsByOneCall) {
  const Folder folder;
  const OpenFile root(static_cast<int>(open_folder(folder.root().string())));
  ASSERT_GE(root.fd(), 0);
  const auto opens = [&](auto&& open, const char* path) {
    const long fd = open(root.fd(), path, 0);
    if (fd >= 0) close(static_cast<int>(fd));
    return fd >= 0 ? 0 : fd;
  };
  for (const char* path : {"a.txt", "dir/index.html", "dir/deep/no index", "fifo"}) {
    EXPECT_EQ(opens(open_beneath, path), 0) << path;
    EXPECT_EQ(opens(open_beneath_by_steps, path), 0) << path;
  }
  for (const char* path : {"outside.txt", "absolute.txt", "up/secret.txt", "../secret.txt",
                           "dir/../../secret.txt", "loop", "nothing", "a.txt/b"}) {
    EXPECT_LT(opens(open_beneath, path), 0) << path;
    EXPECT_LT(opens(open_beneath_by_steps, path), 0) << path;
  }
  EXPECT_THROW(FileServer("/no/such/folder"), std::system_error);
  EXPECT_THROW(FileServer(folder.root().string(), {.prefix = "assets"}), std::invalid_argument);
  EXPECT_THROW(FileServer(folder.root().string(), {.cache_control = "a\nb"}), std::invalid_argument);
}

TEST(FileServerFoldersTest, PathsAndDates) {
  EXPECT_EQ(file_path("a/b%20c/", false), "a/b c/");
  EXPECT_EQ(file_path(".well-known/x", false), ".well-known/x");
  EXPECT_EQ(file_path(".env", true), ".env");
  EXPECT_EQ(behind_prefix("/a/b/c/", "/a/b/"), "c/");
  EXPECT_EQ(behind_prefix("/my%20files/%61", "/my files/"), "%61");
  EXPECT_EQ(behind_prefix("/my%20fil%65s/", "/my%20files/"), "");
  EXPECT_EQ(behind_prefix("/100%25/a%2Fb/c", "/100%/a%2fb/"), "c");
  for (const char* other : {"/my", "/my%20files", "/my%20files%2Fx", "//my%20files/x", "/x/my%20files/x"}) {
    EXPECT_FALSE(behind_prefix(other, "/my files/")) << other;
  }
  EXPECT_EQ(file_path("100%/%4/%zz%41/%25", false), "100%/%4/%zzA/%");
  for (const char* bad : {".env", "a//b", "a/..", "%2E", "a%2Fb", "%00", "%/%2e"}) {
    EXPECT_FALSE(file_path(bad, false)) << bad;
  }
  const sys_seconds now = sys_days(2026y / 11 / 22);
  EXPECT_EQ(format_http_date(sys_seconds(784111777s)), kModified);
  EXPECT_EQ(parse_http_date(kModified, now), sys_seconds(784111777s));
  EXPECT_EQ(parse_http_date("Monday, 01-Jan-35 00:00:00 GMT", now), sys_days(2035y / 1 / 1));
  EXPECT_EQ(parse_http_date("Friday, 01-Jan-99 00:00:00 GMT", now), sys_days(1999y / 1 / 1));
  for (const char* bad :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 31 Feb 1994 00:00:00 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "sun, 06 nov 1994 08:49:37 gmt"}) {
    EXPECT_FALSE(parse_http_date(bad, now)) << bad;
  }
}

}  // namespace
}  // namespace tuza::http::testing
