// Forms with files that a client sends, taken apart again by the server.
#include <gtest/gtest.h>
#include <tuza/http/middleware/body_limit.h>
#include <tuza/http/multipart.h>
#include <tuza/http/multipart_form.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/netpoll/tests/file_testing.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using namespace std::string_literals;
using tuza::testing::run_with;
using tuza::testing::TemporaryDirectory;
using tuza::testing::WithProcs;

class MultipartFormTest : public WithProcs {};
TUZA_WITH_PROCS(MultipartFormTest);

void write_file(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Each part as "name|file name|content type|content".
std::vector<std::string> parts_of(Request& req) {
  std::vector<std::string> parts;
  Multipart form(req, {.field_bytes_max = 8 << 20, .file_bytes_max = 8 << 20});
  for (Part& part : form) {
    std::string text(part.name());
    text.append("|")
        .append(part.file_name().value_or("-"))
        .append("|")
        .append(part.content_type())
        .append("|");
    if (!part.is_file()) {
      parts.push_back(text.append(part.text()));
      continue;
    }
    for (std::string_view piece = part.read(); !piece.empty(); piece = part.read()) text += piece;
    parts.push_back(std::move(text));
  }
  return parts;
}

class Upload {
 public:
  Upload() {
    Router router;
    router.use(body_limit(16 << 20));
    router.handle("POST /", [this](Request& req, ResponseWriter& res) {
      EXPECT_TRUE(req.content_length()) << "some servers want to know it";
      for (std::string& part : parts_of(req)) parts.add(std::move(part));
      res.text("thanks");
    });
    router.handle("POST /moved", [](Request&, ResponseWriter& res) { res.redirect("/", 307); });
    server.emplace(std::move(router));
  }
  std::optional<TestServer> server;
  AskedFor parts;
  Client client;
};

TEST_P(MultipartFormTest, ArriveAsTheyWereMade) {
  run_with(GetParam(), [] {
    Upload up;
    const TemporaryDirectory directory;
    std::string large(1'000'000, 'x');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * i % 251);
    write_file(directory / "a.jpg", large);
    write_file(directory / "empty.txt", "");
    MultipartForm form;
    form.add("title", "\r\n--tuza-\r\n\0"s).add("title", "").add("a\"b\r\nc\\d", "e");
    ASSERT_TRUE(form.add_file("photo", directory / "a.jpg"));
    ASSERT_TRUE(form.add_file("photo", directory / "empty.txt", {.content_type = "a/b"}));
    form.add_file_text("note", "text", {.file_name = "\xc3\xbc \"x\".json"});
    ASSERT_TRUE(form.add_file("again", directory / "a.jpg", {.file_name = "b.bin"}));
    const std::vector<std::string> wanted{"title|-||\r\n--tuza-\r\n\0"s,
                                          "title|-||",
                                          "a\"b\r\nc\\d|-||e",
                                          "photo|a.jpg|image/jpeg|" + large,
                                          "photo|empty.txt|a/b|",
                                          "note|\xc3\xbc \"x\".json|application/json|text",
                                          "again|b.bin|application/octet-stream|" + large};
    for (const char* const target : {"/", "/moved"}) {
      ClientRequest request(Method::kPost, url_of(*up.server, target));
      Result<ClientResponse> res = up.client.send(kNoContext, request.set_multipart(form));
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->body(), "thanks") << target;
      EXPECT_EQ(up.parts.take(), wanted) << target;
    }
    ClientRequest nothing(Method::kPost, url_of(*up.server));
    EXPECT_EQ(up.client.send(kNoContext, nothing.set_multipart({}))->body(), "thanks");
    EXPECT_TRUE(up.parts.take().empty());
  });
}

TEST_P(MultipartFormTest, FilesThatCannotBeSentAreErrors) {
  run_with(GetParam(), [] {
    Upload up;
    const TemporaryDirectory directory;
    const std::string path = directory / "a.txt";
    MultipartForm form;
    EXPECT_TRUE(form.add_file("f", path).error().is(std::errc::no_such_file_or_directory));
    EXPECT_TRUE(form.add_file("f", directory / ".").error().is(std::errc::invalid_argument));
    EXPECT_THROW(form.add_file_text("f", "", {.file_name = "a", .content_type = "a\r\nb"}),
                 std::invalid_argument);
    write_file(path, "twelve bytes");
    ASSERT_TRUE(form.add_file("f", path));
    ClientRequest request(Method::kPost, url_of(*up.server));
    request.set_multipart(std::move(form));
    write_file(path, "twelve bytes and more");
    EXPECT_EQ(up.client.send(kNoContext, request)->body(), "thanks");
    EXPECT_EQ(up.parts.take(), std::vector<std::string>{"f|a.txt|text/plain; charset=utf-8|twelve bytes"});
    write_file(path, "few");
    const Error shorter = up.client.send(kNoContext, request).error();
    EXPECT_TRUE(shorter.is(Errc::kEndOfStream) && shorter.message().contains(path)) << shorter.message();
    std::filesystem::remove(path);
    EXPECT_TRUE(up.client.send(kNoContext, request).error().is(std::errc::no_such_file_or_directory));
  });
}

}  // namespace
}  // namespace tuza::http::testing
