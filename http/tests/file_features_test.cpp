// What FileServer can do besides files as they are: codings, listings; and files that handlers send.
#include <tuza/http/file_server.h>

#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tuza/http/files/http_date.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

TEST(FileCodingsTest, TheSiblingThatTheClientPrefers) {
  const Folder folder;
  for (const char* name :
       {"app.js", "app.js.br", "app.js.gz", "app.js.zst", "one.css", "one.css.gz", "lonely.txt.gz"}) {
    Folder::write(folder.root() / name, name);
  }
  fs::create_symlink("../../secret.txt", folder.root() / "dir/index.html.br");
  const FileServer files(folder.root().string(), {.precompressed = {"br", "zstd", "gzip"}});
  struct Case {
    const char *path, *accepts, *coding, *body, *type;
  };
  const char *js = "text/javascript; charset=utf-8", *css = "text/css; charset=utf-8";
  const Case cases[] = {
      {"/app.js", nullptr, nullptr, "app.js", js},
      {"/app.js", "", nullptr, "app.js", js},
      {"/app.js", "gzip", "gzip", "app.js.gz", js},
      {"/app.js", "x-gzip", "gzip", "app.js.gz", js},
      {"/app.js", "gzip, deflate, br, zstd", "br", "app.js.br", js},
      {"/app.js", "br;q=0.5, gzip;q=0.8, zstd;q=0.1", "gzip", "app.js.gz", js},
      {"/app.js", "br;q=0, *", "zstd", "app.js.zst", js},
      {"/app.js", "*", "br", "app.js.br", js},
      {"/app.js", "identity, gzip;q=0.5", nullptr, "app.js", js},
      {"/app.js", "deflate", nullptr, "app.js", js},
      {"/app.js", "gzip;q=nonsense", nullptr, "app.js", js},
      {"/app.js", "identity;q=0", nullptr, "app.js", js},  // RFC 9110 12.4.1: what there is, rather than 406
      {"/one.css", "br, gzip;q=0.1", "gzip", "one.css.gz", css},
      {"/one.css", "br, identity;q=0.5, gzip;q=0.1", nullptr, "one.css", css},
      {"/one.css", "br", nullptr, "one.css", css},
      {"/one.css.gz", "gzip", nullptr, "one.css.gz", "application/gzip"},
      {"/dir/", "br", nullptr, "<p>dir",
       "text/html; charset=utf-8"},  // its sibling lies outside of the folder
  };
  for (const Case& c : cases) {
    HeaderFields fields;
    if (c.accepts != nullptr) fields.emplace_back("Accept-Encoding", c.accepts);
    const std::string told = std::string(c.path) + " " + (c.accepts == nullptr ? "-" : c.accepts);
    const CallResult r = call(files, std::string("GET ") + c.path, {.headers = fields});
    EXPECT_EQ(r.status, 200) << told;
    EXPECT_EQ(r.body, c.body) << told;
    EXPECT_EQ(r.header("Content-Type"), c.type) << told;
    EXPECT_EQ(r.header("Content-Encoding"),
              c.coding == nullptr ? std::optional<std::string_view>() : c.coding)
        << told;
    EXPECT_EQ(r.header("Vary"), "Accept-Encoding") << told;
  }
  EXPECT_EQ(call(files, "GET /lonely.txt", {.headers = {{"Accept-Encoding", "gzip"}}}).status, 404);
  const auto etag = [&](const char* accepts) {
    return std::string(
        call(files, "GET /app.js", {.headers = {{"Accept-Encoding", accepts}}}).header("ETag").value());
  };
  EXPECT_NE(etag("br"), etag("gzip"));
  EXPECT_NE(etag("br"), etag("identity"));
  const CallResult part =
      call(files, "GET /app.js", {.headers = {{"Accept-Encoding", "br"}, {"Range", "bytes=4-"}}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "js.br") << "a range of the coded bytes";
  EXPECT_EQ(part.header("Content-Encoding"), "br");
  const CallResult known =
      call(files, "GET /app.js", {.headers = {{"Accept-Encoding", "gzip"}, {"If-None-Match", etag("gzip")}}});
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(known.header("Vary"), "Accept-Encoding");
  EXPECT_FALSE(
      call(FileServer(folder.root().string()), "GET /app.js", {.headers = {{"Accept-Encoding", "br"}}})
          .header("Vary"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"deflate"}, {"br", "br"}}) {
    EXPECT_THROW(FileServer(folder.root().string(), {.precompressed = wrong}), std::invalid_argument);
  }
  EXPECT_THROW(FileServer(folder.root().string(), {.cache_age_max = 1001ms}), std::invalid_argument);
}

// A sibling that was forgotten when its file was changed would bring the old content back.
TEST(FileCodingsTest, ASiblingOlderThanItsFileIsNotServed) {
  const Folder folder;
  Folder::write(folder.root() / "a.txt.gz", "coded");
  const FileServer files(folder.root().string(), {.precompressed = {"gzip"}});
  const auto coded = [&](time_t modified) {
    Folder::set_time(folder.root() / "a.txt.gz", modified);
    return call(files, "GET /a.txt", {.headers = {{"Accept-Encoding", "gzip"}}}).body == "coded";
  };
  EXPECT_TRUE(coded(784111778));
  EXPECT_FALSE(coded(784111776));
  EXPECT_TRUE(coded(784111777)) << "made with the time of its file, as gzip and brotli do";
}

// A client would decode the multipart as a whole.
TEST(FileCodingsTest, SeveralRangesOfASiblingAreTheWhole) {
  const Folder folder;
  Folder::write(folder.root() / "a.js", "plain");
  Folder::write(folder.root() / "a.js.br", "coded bytes");
  const FileServer files(folder.root().string(), {.precompressed = {"br"}});
  const CallResult parts =
      call(files, "GET /a.js", {.headers = {{"Accept-Encoding", "br"}, {"Range", "bytes=0-1,4-5"}}});
  EXPECT_EQ(parts.status, 200);
  EXPECT_EQ(parts.body, "coded bytes");
  EXPECT_EQ(parts.header("Content-Encoding"), "br");
}

// What a program sets before it calls FileServer stays, and there is one of each.
TEST(FileFieldsTest, WhatIsSetAlreadyStays) {
  const Folder folder;
  Folder::write(folder.root() / "a.txt.gz", "coded");
  const FileServer files(folder.root().string(), {.cache_control = "no-cache", .precompressed = {"gzip"}});
  const std::vector<HeaderFields> sets{
      {{"Content-Type", "text/x-own"}},
      {{"content-type", "text/x-own"}, {"cache-control", "private"}},
      {{"ETag", "\"own\""}, {"Last-Modified", "Mon, 01 Jan 2001 00:00:00 GMT"}},
      {{"Content-Encoding", "br"}, {"Accept-Ranges", "none"}, {"Vary", "Origin"}},
  };
  for (const HeaderFields& set : sets) {
    const Handler handler = [&](Request& req, ResponseWriter& res) {
      for (const auto& [name, value] : set) res.set_header(name, value);
      files(req, res);
    };
    for (const HeaderFields& asked :
         {HeaderFields(), HeaderFields{{"Range", "bytes=0-1"}}, HeaderFields{{"Accept-Encoding", "gzip"}}}) {
      const CallResult r = call(handler, "GET /a.txt", {.headers = asked});
      for (const auto& [name, value] : set) EXPECT_EQ(r.header(name), value) << name;
      for (const char* name : {"Content-Type", "Cache-Control", "ETag", "Last-Modified", "Content-Encoding",
                               "Accept-Ranges", "Content-Length"}) {
        const auto is_it = [name](const auto& field) { return equals_ignoring_case(field.first, name); };
        EXPECT_LE(std::count_if(r.headers.begin(), r.headers.end(), is_it), 1) << name;
      }
    }
  }
  const Handler tagged = [&](Request& req, ResponseWriter& res) {
    res.set_header("Content-Type", "text/x-own");
    res.set_header("Content-Language", "la");
    res.set_header("ETag", "\"own\"");
    res.set_header("Last-Modified", "Mon, 01 Jan 2001 00:00:00 GMT");
    files(req, res);
  };
  const auto status = [&](const HeaderFields& fields) {
    return call(tagged, "GET /a.txt", {.headers = fields}).status;
  };
  EXPECT_EQ(status({{"If-None-Match", "\"own\""}}), 304);
  const CallResult unchanged = call(tagged, "GET /a.txt", {.headers = {{"If-None-Match", "\"own\""}}});
  EXPECT_EQ(unchanged.header("ETag"), "\"own\"");
  for (const char* name : {"Content-Type", "Content-Language", "Content-Encoding"})
    EXPECT_FALSE(unchanged.header(name)) << name << " is that of the response which the client has";
  EXPECT_EQ(status({{"If-Match", "\"other\""}}), 412);
  EXPECT_EQ(status({{"If-Range", "\"own\""}, {"Range", "bytes=0-1"}}), 206);
  EXPECT_EQ(status({{"If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"}}), 304);
  EXPECT_EQ(status({{"If-Modified-Since", "Sun, 31 Dec 2000 23:59:59 GMT"}}), 200);
}

// Who sets the field knows nothing of the others.
TEST(FileFieldsTest, VaryNamesEachFieldOnce) {
  const Folder folder;
  Folder::write(folder.root() / "a.txt", std::string(5'000, 'a'));
  const FileServer files(folder.root().string(), {.precompressed = {"gzip"}});
  for (const auto& [set, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "Accept-Encoding;"},
           {"Origin", "Origin;Accept-Encoding;"},
           {"accept-encoding", "accept-encoding;"},
           {"Origin, Accept-Encoding", "Origin, Accept-Encoding;"},
           {"X-Accept-Encoding", "X-Accept-Encoding;Accept-Encoding;"},
           {"*", "*;"}}) {
    const auto handler = [&, &set = set](Request& req, ResponseWriter& res) {
      if (!set.empty()) res.set_header("Vary", set);
      files(req, res);
    };
    const CallOptions asked{.headers = {{"Accept-Encoding", "br"}}};
    for (const CallResult& r : {call(Handler(handler), "GET /a.txt", asked),
                                call(with(handler, compress()), "GET /a.txt", asked)}) {
      std::string all;
      for (const auto& [name, value] : r.headers)
        if (equals_ignoring_case(name, "Vary")) all += value + ";";
      EXPECT_EQ(all, expected);
    }
  }
}

// Archives and clients set any time. In nanoseconds, years from 2262 on do not fit into 64 bits.
TEST(FileTrapsTest, AFileOfTheFarFuture) {
  const Folder folder;
  Folder::write(folder.root() / "a.txt", std::string(70'000, 'x'));
  Folder::set_time(folder.root() / "a.txt", 9'999'999'999);  // in the year 2286
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const CallResult r = call(FileServer(folder.root().string()), "GET /a.txt");
  EXPECT_EQ(r.body.size(), 70'000u);
  EXPECT_TRUE(r.header("ETag").value().starts_with("W/")) << "it has not settled";
  EXPECT_GE(parse_http_date(r.header("Last-Modified").value(), now), now) << "not in a distant past";
}

class ListingTest : public ::testing::Test {
 protected:
  ListingTest() {
    Folder::write(folder_.root() / "dir/<b>&\"'.txt", "12345");
    Folder::write(folder_.root() / "dir/javascript:alert(1)", "");
    Folder::write(folder_.root() / "dir/a?b#c%20 d", "");
    Folder::write(folder_.root() / "dir/not\xffutf8", "");
    Folder::write(folder_.root() / "dir/.hidden", "");
    fs::remove(folder_.root() / "dir/index.html");
    fs::create_symlink("../a.txt", folder_.root() / "dir/link.txt");
    fs::create_symlink("../../secret.txt", folder_.root() / "dir/outside.txt");
    fs::create_symlink("nothing", folder_.root() / "dir/dangling");
    mkfifo((folder_.root() / "dir/fifo").c_str(), 0666);
    Folder::set_time(folder_.root() / "dir/deep", 784111777);
  }
  const Folder folder_;
};

TEST_F(ListingTest, IsOffUnlessSaidOtherwise) {
  EXPECT_EQ(call(FileServer(folder_.root().string()), "GET /dir/").status, 404);
}

TEST_F(ListingTest, ShowsWhatIsServedAndNothingElse) {
  const FileServer files(folder_.root().string(), {.listing = true});
  const CallResult page = call(files, "GET /dir/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.header("Vary"), "Accept");
  EXPECT_TRUE(page.header("Content-Security-Policy").value_or("").starts_with("default-src 'none'"));
  std::size_t at = 0;
  for (const char* expected :
       {"<title>/dir/</title>", "href=\"../\"",
        "<a href=\"./deep/\"><bdi>deep/</bdi></a></td><td></td><td>1994-11-06 08:49:37",
        "href=\"./%3Cb%3E%26%22%27.txt\"><bdi>&lt;b&gt;&amp;&quot;&#39;.txt</bdi></a></td><td>5</td>",
        "href=\"./a%3Fb%23c%2520%20d\"", "href=\"./javascript%3Aalert%281%29\"",
        "href=\"./link.txt\"><bdi>link.txt</bdi></a></td><td>20</td>",
        "href=\"./not%FFutf8\"><bdi>not\xef\xbf\xbdutf8</bdi>"}) {
    const std::size_t found = page.body.find(expected, at);
    EXPECT_NE(found, std::string::npos) << expected << "\n" << page.body;
    if (found != std::string::npos) at = found;  // in this order
  }
  for (const char* hidden : {"outside", "dangling", "fifo", "hidden", "<b>&"}) {
    EXPECT_EQ(page.body.find(hidden), std::string::npos) << hidden;
  }
  EXPECT_EQ(call(files, "HEAD /dir/").body, "");
  EXPECT_EQ(call(files, "GET /dir").status, 301);
  EXPECT_EQ(call(files, "GET /nothing/").status, 404);
  EXPECT_EQ(call(files, "GET /up/").status, 404) << "a link out of the folder";
  EXPECT_EQ(call(files, "GET /.git/").status, 404);
  EXPECT_EQ(call(files, "GET /").body.find("href=\"../\""), std::string::npos) << "there is nothing above";
}

TEST_F(ListingTest, AsJson) {
  Router router;
  router.mount("/pub", FileServer(folder_.root().string(), {.listing = true}));
  const CallResult r =
      call(router, "GET /pub/dir/", {.headers = {{"Accept", "text/html;q=0.1, application/json"}}});
  EXPECT_EQ(r.header("Content-Type"), "application/json");
  const nlohmann::json listing = nlohmann::json::parse(r.body);
  EXPECT_EQ(listing["path"], "/pub/dir/");
  EXPECT_EQ(listing["complete"], true);
  ASSERT_EQ(listing["entries"].size(), 6u) << r.body;
  EXPECT_EQ(listing["entries"][0]["type"], "folder");
  EXPECT_EQ(listing["entries"][0]["modified"], "1994-11-06T08:49:37Z");
  EXPECT_FALSE(listing["entries"][0].contains("size"));
  const nlohmann::json& odd = listing["entries"][1];
  EXPECT_EQ(odd["name"], "<b>&\"'.txt");
  EXPECT_EQ(odd["size"], 5);
  for (const nlohmann::json& entry : listing["entries"]) {
    const std::string href = entry["href"];
    if (entry["type"] != "file") continue;
    EXPECT_EQ(call(router, "GET /pub/dir/" + href.substr(2)).status, 200) << href;
  }
}

// Opening a FIFO wakes its writer, and opening a device may rewind a tape.
TEST(FileTrapsTest, WhatIsNoFileIsNotOpened) {
  const Folder folder;
  const FileServer files(folder.root().string(), {.names_that_begin_with_dot = true, .listing = true});
  struct sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder.root() / "socket").string();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
  fs::create_symlink("/dev/zero", folder.root() / "zero");
  fs::create_symlink("/proc/self/fd/0", folder.root() / "magic");
  const int opened = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(opened, (folder.root() / "fifo").c_str(), IN_OPEN), 0);
  for (const char* trap : {"/socket", "/zero", "/magic", "/fifo", "/loop", "/up/", "/a.txt/", "/fifo/"}) {
    EXPECT_EQ(call(files, std::string("GET ") + trap).status, 404) << trap;
  }
  close(socket);
  std::array<char, 4096> events;
  EXPECT_EQ(read(opened, events.data(), events.size()), -1) << "somebody has opened the FIFO";
  close(opened);
}

Handler sender(std::string path, SendFileOptions options = {}) {
  return [path, options](Request&, ResponseWriter& res) { res.send_file(path, options); };
}

TEST(SendFileTest, AHandlerSendsAFileWithAllThatFileServerDoes) {
  const Folder folder;
  const std::string path = (folder.root() / "a.txt").string();
  const CallResult r = call(sender(path, {.cache_control = "no-store"}), "GET /");
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.body, kText);
  EXPECT_EQ(r.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(r.header("Content-Length"), "20");
  EXPECT_EQ(r.header("Last-Modified"), kModified);
  EXPECT_EQ(r.header("Cache-Control"), "no-store");
  EXPECT_FALSE(r.header("Content-Disposition"));
  const std::string etag(r.header("ETag").value());
  EXPECT_EQ(call(sender(path), "GET /", {.headers = {{"If-None-Match", etag}}}).status, 304);
  EXPECT_EQ(call(sender(path), "GET /", {.headers = {{"Range", "bytes=1-2"}}}).body, "12");
  EXPECT_EQ(call(sender(path), "HEAD /").header("Content-Length"), "20");
  const CallResult posted =
      call(sender(path), "POST /", {.headers = {{"Range", "bytes=1-2"}, {"If-None-Match", etag}}});
  EXPECT_EQ(posted.status, 200);
  EXPECT_EQ(posted.body, kText);
  const Handler page = [&](Request&, ResponseWriter& res) {
    res.status(503);
    res.set_header("Content-Type", "text/html");
    res.send_file(path);
  };
  const CallResult down = call(page, "GET /", {.headers = {{"Range", "bytes=1-2"}, {"If-None-Match", etag}}});
  EXPECT_EQ(down.status, 503);
  EXPECT_EQ(down.body, kText);
  EXPECT_EQ(down.header("Content-Type"), "text/html");
  EXPECT_FALSE(down.header("ETag")) << "it is not what the page's URL stands for";
}

TEST(SendFileTest, Refusals) {
  const Folder folder;
  for (const char* name : {"nothing", "dir", "fifo", "a.txt/b", "loop"}) {
    EXPECT_EQ(call(sender((folder.root() / name).string()), "GET /").status, 404) << name;
  }
  EXPECT_EQ(call(sender((folder.root() / std::string_view("a.txt\0", 6)).string()), "GET /").status, 404);
  const fs::path locked = folder.root() / "empty.css";
  fs::permissions(locked, fs::perms::none);
  {
    const WithoutPrivileges nobody;
    EXPECT_EQ(call(sender(locked.string()), "GET /").status, 403);
    EXPECT_EQ(call(FileServer(folder.root().string()), "GET /empty.css").status, 403);
  }
  const Handler closed = [](Request&, ResponseWriter& res) { res.send_file(File()); };
  EXPECT_EQ(call(closed, "GET /").status, 500);
}

TEST(SendFileTest, AnOpenFileAndAPartOfIt) {
  const Folder folder;
  const File file = File::open((folder.root() / "a.txt").string()).value();
  const CallResult whole =
      call([&](Request&, ResponseWriter& res) { res.send_file(file, {.content_type = "a/b"}); }, "GET /");
  EXPECT_EQ(whole.body, kText);
  EXPECT_EQ(whole.header("Content-Type"), "a/b");
  const CallResult part = call(
      [&](Request&, ResponseWriter& res) {
        const File::Number number(file);
        res.set_header("Content-Length", "9");
        ASSERT_TRUE(res.write("<"));
        ASSERT_TRUE(res.write_file({number.fd(), 10, 7}));
        ASSERT_TRUE(res.write(">"));
        EXPECT_THROW((void)res.write_file({number.fd(), 0, 1}), std::logic_error) << "beyond Content-Length";
      },
      "GET /");
  EXPECT_EQ(part.body, "<abcdefg>");
  EXPECT_TRUE(part.complete);
  const CallResult cut = call(
      [&](Request&, ResponseWriter& res) {
        const File::Number number(file);
        res.set_header("Content-Length", "30");
        EXPECT_FALSE(res.write_file({number.fd(), 0, 30}));
      },
      "GET /");
  EXPECT_FALSE(cut.complete) << "the file is shorter";
  EXPECT_TRUE(cut.closes);
}

TEST(SendFileTest, NamesOfDownloads) {
  const Folder folder;
  const std::string path = (folder.root() / "a.txt").string();
  const auto disposition = [&](std::string_view name) {
    return std::string(
        call(sender(path, {.download_name = name}), "GET /").header("Content-Disposition").value());
  };
  EXPECT_EQ(disposition("report 1.pdf"), "attachment; filename=\"report 1.pdf\"");
  EXPECT_EQ(disposition("\u00fc.txt"), "attachment; filename=\"__.txt\"; filename*=UTF-8''%C3%BC.txt");
  EXPECT_EQ(disposition("a\"\r\nX: b"),
            "attachment; filename=\"a___X: b\"; filename*=UTF-8''a%22%0D%0AX%3A%20b");
}

// Middleware that changes bodies sees those of files, too, small ones and large ones.
TEST(SendFileTest, CompressedByMiddleware) {
  const Folder folder;
  for (const std::size_t size : {std::size_t{4'000}, std::size_t{300'000}}) {
    Folder::write(folder.root() / "large.txt", std::string(size, 'x'));
    const Handler handler = compress({.codings = {"gzip"}})(FileServer(folder.root().string()));
    const CallResult r = call(handler, "GET /large.txt", {.headers = {{"Accept-Encoding", "gzip"}}});
    EXPECT_EQ(r.status, 200) << size;
    EXPECT_EQ(r.header("Content-Encoding"), "gzip") << size;
    EXPECT_LT(r.body.size(), size / 10) << size;
    EXPECT_TRUE(r.body.starts_with("\x1f\x8b")) << size;
    EXPECT_TRUE(r.complete) << size;
    EXPECT_EQ(call(handler, "GET /large.txt").body.size(), size);
  }
}

Handler content(std::string bytes, SendContentOptions options = {}) {
  return [bytes = std::move(bytes), options](Request&, ResponseWriter& res) {
    res.send_content(bytes, options);
  };
}

TEST(SendContentTest, BytesInMemoryAreSentAsAFileIs) {
  const auto modified = std::chrono::sys_days(std::chrono::year(2001) / 9 / 9);
  const Handler handler = content("0123456789", {.name = "ten.css", .last_modified = modified});
  const CallResult whole = call(handler, "GET /");
  EXPECT_EQ(whole.body, "0123456789");
  EXPECT_EQ(whole.header("Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(whole.header("Last-Modified"), "Sun, 09 Sep 2001 00:00:00 GMT");
  EXPECT_EQ(whole.header("Accept-Ranges"), "bytes");
  const std::string tag(whole.header("ETag").value());
  EXPECT_NE(call(content("0123456780"), "GET /").header("ETag"), tag);
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"If-None-Match", tag}}}).status, 304);
  EXPECT_EQ(
      call(handler, "GET /", {.headers = {{"If-Modified-Since", "Mon, 10 Sep 2001 00:00:00 GMT"}}}).status,
      304);
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"If-Match", "\"another\""}}}).status, 412);
  const CallResult part = call(handler, "GET /", {.headers = {{"Range", "bytes=-3"}, {"If-Range", tag}}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "789");
  EXPECT_EQ(call(handler, "GET /", {.headers = {{"Range", "bytes=10-"}}}).header("Content-Range"),
            "bytes */10");
  EXPECT_EQ(call(handler, "HEAD /").header("Content-Length"), "10");
}

TEST(SendContentTest, WhatTheProgramHasSaidOfThemCounts) {
  const Handler tagged = [](Request&, ResponseWriter& res) {
    res.set_header("ETag", "\"v7\"");
    res.set_header("Content-Type", "model/vnd.usdz+zip");
    res.send_content("bytes", {.name = "a.css", .cache_control = "private", .download_name = "b.usdz"});
  };
  const CallResult r = call(tagged, "GET /");
  EXPECT_EQ(r.header("ETag"), "\"v7\"");
  EXPECT_EQ(r.header("Content-Type"), "model/vnd.usdz+zip");
  EXPECT_EQ(r.header("Cache-Control"), "private");
  EXPECT_EQ(r.header("Content-Disposition"), "attachment; filename=\"b.usdz\"");
  EXPECT_FALSE(r.header("Last-Modified"));
  EXPECT_EQ(call(tagged, "GET /", {.headers = {{"If-None-Match", "\"v7\""}}}).status, 304);
  // A response cannot have been modified after it was sent.
  const auto future = std::chrono::sys_days(std::chrono::year(2286) / 11 / 20);
  const std::string late(
      call(content("a", {.last_modified = future}), "GET /").header("Last-Modified").value());
  EXPECT_FALSE(late.ends_with("2286 00:00:00 GMT")) << late;
  EXPECT_EQ(call(content(""), "GET /").header("Content-Length"), "0");
}

}  // namespace
}  // namespace tuza::http::testing
