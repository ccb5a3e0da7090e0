// Files on the wire: framing when the body comes from a file, and responses that break off because the file does.
#include <tuza/http/middleware/compress.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/router.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/file.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

constexpr std::size_t kLarge = 300'000;
std::string large_text() {
  std::string text;
  for (int i = 0; text.size() < kLarge; ++i) text += std::to_string(i) + "\n";
  text.resize(kLarge);
  return text;
}

// "GET /<what comes behind it>": writes "<", `bytes` of the file, of which there may be fewer, and ">".
class FileWireTest : public ::testing::Test {
 protected:
  FileWireTest() { Folder::write(folder_.root() / "large.txt", text_); }

  void send(ResponseWriter& res, std::uint64_t bytes, bool trailers) const {
    const File file = File::open((folder_.root() / "large.txt").string()).value();
    const File::Number number(file);
    res.set_header("Content-Type", "text/plain");
    res.set_header("Content-Length", std::to_string(bytes + 2));
    if (trailers) res.add_trailer("X-Sum", "1");
    if (!res.write("<") || !res.write_file({number.fd(), 0, bytes})) return;
    (void)res.write(">");
  }
  Router router() const {
    Router router;
    const auto add = [&](const char* pattern, std::uint64_t bytes, bool trailers, bool compressed) {
      Handler handler = [=, this](Request&, ResponseWriter& res) { send(res, bytes, trailers); };
      if (compressed) handler = compress({.codings = {"gzip"}})(std::move(handler));
      router.handle(pattern, std::move(handler));
    };
    add("/whole", kLarge, false, false);
    add("/whole/trailers", kLarge, true, false);
    add("/cut", kLarge + 1, false, false);
    add("/cut/trailers", kLarge + 1, true, false);
    add("/cut/compressed", kLarge + 1, false, true);
    router.handle("/end", [](Request&, ResponseWriter& res) { res.text("the next response"); });
    return router;
  }

  const std::string text_ = large_text();
  const Folder folder_;
};

TEST_F(FileWireTest, TrailersComeBehindAFile) {
  run_with(2, [&] {
    TestServer server(router());
    for (const char* path : {"/whole", "/whole/trailers"}) {
      RawClient client(server.address());
      client.send(ask(path) + ask("/end"));
      const auto responses = client.read_responses(2);
      ASSERT_EQ(responses.size(), 2u) << path;
      EXPECT_TRUE(responses[0].body == "<" + text_ + ">") << path;
      EXPECT_EQ(responses[1].body, "the next response") << path;
    }
  });
}

// A client, or a cache on the way, must not take the part for the whole.
TEST_F(FileWireTest, AResponseWhoseFileIsTooShortHasNoEnd) {
  run_with(2, [&] {
    TestServer server(router());
    for (const char* path : {"/cut", "/cut/trailers", "/cut/compressed"}) {
      RawClient client(server.address());
      client.send(ask(path, "Accept-Encoding: gzip\r\n") + ask("/end"));
      client.read_until_closed();
      EXPECT_TRUE(client.closed());
      const auto responses = parse_responses(client.received(), true);
      ASSERT_EQ(responses.size(), 1u) << path;
      EXPECT_EQ(responses[0].status, 200) << path;
      EXPECT_FALSE(responses[0].complete) << path;
      EXPECT_FALSE(client.received().ends_with("0\r\n\r\n")) << path;
    }
  });
}

// In HTTP/1.0 a body without a length ends with the connection: only a reset tells that it was cut off.
TEST_F(FileWireTest, InHttp10ItEndsWithAReset) {
  run_with(2, [&] {
    TestServer server(router());
    RawClient client(server.address());
    client.send("GET /cut/compressed HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    std::array<std::byte, 4096> into;
    Result<std::size_t> n = std::size_t{1};
    while (n && *n > 0) n = client.conn().read(into);
    EXPECT_FALSE(n) << "an orderly end";

    const Response whole = fetch(server.address(), "GET /whole HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(whole.body == "<" + text_ + ">");
    EXPECT_EQ(whole.header("content-length"), std::to_string(kLarge + 2));
    EXPECT_EQ(whole.header("connection"), "close");
  });
}

}  // namespace
}  // namespace tuza::http::testing
