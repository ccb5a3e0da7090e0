// Uploads: RFC 7578 as browsers send it, in any pieces, within limits, and nothing left behind.
#include <tuza/http/multipart.h>
#include <tuza/http/multipart/body.h>
#include <tuza/http/multipart/disposition.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/status_error.h>
#include <tuza/http/testing.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/sched/run.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

constexpr std::string_view kType = "multipart/form-data; boundary=xX-1";

struct Pieces final : MultipartSource {
  Pieces(std::string_view whole, std::size_t first, std::size_t each)
      : left(whole), next(first), step(each) {}
  std::size_t read(std::span<char> into) override {
    const std::size_t n = std::min({into.size(), left.size(), next});
    std::copy_n(left.begin(), n, into.begin());
    left.remove_prefix(n);
    next = step;
    return n;
  }
  std::string_view left;
  std::size_t next, step;
};

// "head{data}head{data}", or the status.
std::string split(std::string_view body, std::size_t first = SIZE_MAX, std::size_t step = SIZE_MAX) {
  Pieces source(body, first, step);
  MultipartBody multipart(source, "xX-1", 100);
  std::string out;
  try {
    while (multipart.next_part()) {
      out.append(multipart.head()).append("{");
      for (std::string_view data; !(data = multipart.data()).empty();) out += data;
      out += "}";
    }
  } catch (const StatusError& error) {
    return std::to_string(error.status());
  }
  return out;
}

TEST(MultipartBodyTest, SplitsHoweverItArrives) {
  struct Case {
    std::string body, parts;
  };
  const std::vector<Case> cases = {
      {"--xX-1\r\nA: b\r\n\r\ndata\r\n--xX-1--\r\n", "A: b{data}"},
      {"--xX-1\r\nA: b\r\n\r\ndata\r\n--xX-1--", "A: b{data}"},
      {"pre\r\namble\r\n--xX-1 \t\r\nA: "
       "b\r\nC:d\r\n\r\n1\r\n--xX-1\r\n\r\n2\r\n--xX-1-- \t\r\nepilogue\r\n--xX-1\r\n",
       "A: b\r\nC:d{1}{2}"},
      {"--xX-1\r\nA: b\r\n\r\n\r\n--xX-1\r\nC: d\r\n\r\n--xX-1--", "A: b{}C: d{}"},
      {"--xX-1\r\n\r\n\r\r\n\r\n-\r\n--\r\n--xX\r\n--xX-\n--xX-1\r\n--xX-1--",
       "{\r\r\n\r\n-\r\n--\r\n--xX\r\n--xX-\n--xX-1}"},
      {"--xX-1--", ""},
      {"--xX-1--epilogue\r\n", "400"},
      {"--xX-1\r\n\r\n1\r\n--xX-1--xX-1\r\n\r\n2\r\n--xX-1--", "400"},
      {"\r\n--xX-1--", ""},
      {"", "400"},
      {"--xX-1", "400"},
      {"--xX-1-", "400"},
      {"--xX-1\r\n", "400"},
      {"--xX-1\r\nA: b", "400"},
      {"--xX-1\r\nA: b\r\n\r\n", "400"},
      {"--xX-1\r\nA: b\r\n\r\ndata", "400"},
      {"--xX-1\r\nA: b\r\n\r\ndata\r\n--xX-", "400"},
      {"--xX-1\nA: b\n\ndata\n--xX-1--", "400"},
      {"--xX-12\r\n\r\ndata\r\n--xX-1--", "400"},
      {"--xX-1\r\n\r\ndata\r\n--xX-1y\r\n--xX-1--", "400"},
      {"--xX-1\r\n\r\ndata\r\n--xX-1-\r\n--xX-1--", "400"},
      {"--xX-1\r\n" + std::string(100, 'h') + "\r\n\r\n1\r\n--xX-1--", std::string(100, 'h') + "{1}"},
      {"--xX-1\r\n" + std::string(101, 'h') + "\r\n\r\n1\r\n--xX-1--", "413"},
      {"--xX-1" + std::string(101, ' ') + "\r\n\r\n1\r\n--xX-1--", "413"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(split(c.body), c.parts) << c.body;
    EXPECT_EQ(split(c.body, 1, 1), c.parts) << "byte by byte: " << c.body;
    for (std::size_t at = 1; at < c.body.size(); ++at)
      EXPECT_EQ(split(c.body, at), c.parts) << at << ": " << c.body;
  }
}

// Data that looks like delimiters everywhere, across the ends of the buffer.
TEST(MultipartBodyTest, LargeDataComesThrough) {
  std::string data;
  while (data.size() < 200'000) data += "\r\n--xX-\r\r\n--x";
  for (const std::size_t step : {std::size_t{7}, std::size_t{1000}, SIZE_MAX}) {
    const std::string got = split("--xX-1\r\n\r\n" + data + "\r\n--xX-1--", step, step);
    EXPECT_TRUE(got == "{" + data + "}") << step;
  }
}

TEST(MultipartHead, NamesAsBrowsersSendThem) {
  const auto names = [](std::string_view field) {
    const auto found = parse_disposition(field);
    return found ? found->name + "|" + found->file_name.value_or("none") : "malformed";
  };
  EXPECT_EQ(names("form-data; name=\"a\""), "a|none");
  EXPECT_EQ(names("FORM-DATA;NAME=a ;; Filename=\"b c.txt\";"), "a|b c.txt");
  EXPECT_EQ(names("form-data; name=\"a%22b\"; filename=\"%22%0D%0A%41%\""), "a\"b|\"\r\n%41%");
  EXPECT_EQ(names(R"(form-data; name="a"; filename="a\"b\\c;d.txt")"), "a|a\"b\\c;d.txt");
  EXPECT_EQ(names(R"(form-data; name="a"; filename="C:\docs\x.txt")"), "a|C:\\docs\\x.txt");
  EXPECT_EQ(names("form-data; name=\"\xc3\xa4\"; filename=\"\"; filename*=UTF-8''evil"), "\xc3\xa4|");
  for (const char* bad :
       {"", "attachment; name=a", "form-data", "form-data; filename=a", "form-data; name=\"a",
        "form-data; name", "form-data; name=a b", "form-data; name=a; NAME=b",
        "form-data; name=a; filename=b; filename=c", "form-data; name=\"a\"b", "form-data; =a"}) {
    EXPECT_EQ(names(bad), "malformed") << bad;
  }
  EXPECT_TRUE(is_part_head("A: b\r\nC:\t\xc3\xa4"));
  for (const char* bad :
       {"A", ": b", "A b: c", "A: b\r\n c", "A: b\rC: d", "A: b\nC: d", "A: \x01", "A : b"}) {
    EXPECT_FALSE(is_part_head(bad)) << bad;
  }
}

TEST(MultipartHead, Boundaries) {
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b:c\""), "a b:c");
  const std::string long_one(70, 'x');
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=" + long_one), long_one);
  for (const std::string& bad : std::vector<std::string>{
           "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"a \"",
           "multipart/form-data; boundary=\"a", "multipart/mixed; boundary=a",
           "multipart/form-data; boundary=a; boundary=b", "multipart/form-data; boundary=x" + long_one,
           "multipart/form-data; boundary=\"\xc3\xa4\""}) {
    EXPECT_EQ(multipart_boundary(bad), std::nullopt) << bad;
  }
}

TEST(MultipartHead, SafeFileNames) {
  EXPECT_EQ(safe_file_name("photo 1.jpg"), "photo 1.jpg");
  EXPECT_EQ(safe_file_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(safe_file_name("C:\\docs\\x.txt"), "x.txt");
  EXPECT_EQ(safe_file_name(".htaccess"), "htaccess");
  for (const char* device : {"con", "NUL.txt", "Aux", "prn.a.b", "com1", "LPT9.jpg", "con .txt"})
    EXPECT_EQ(safe_file_name(device), "_" + std::string(device));
  EXPECT_EQ(safe_file_name("nul." + std::string(196, 'a')), "_nul." + std::string(195, 'a'));
  for (const char* name : {"console", "com", "com10", "comX", "a.con", "nul-1"})
    EXPECT_EQ(safe_file_name(name), name);
  EXPECT_EQ(safe_file_name("a\r\n\"<b>:?*|.txt. . "), "a____b_____.txt");
  EXPECT_EQ(safe_file_name("\xe2\x80\xae"
                           "gpj.exe\xc2\x85\xff\xc3"),
            "_gpj.exe___");
  EXPECT_EQ(safe_file_name("stra\xc3\x9f"
                           "e.txt"),
            "stra\xc3\x9f"
            "e.txt");
  EXPECT_EQ(safe_file_name("a\u061cb\u200bc\ufeff"), "a_b_c_");
  for (const char* nothing : {"", ".", "..", "...", "/", "a/", " . "})
    EXPECT_EQ(safe_file_name(nothing), "file") << nothing;
  const std::string cut = safe_file_name(std::string(199, 'a') + "\xc3\xa4");
  EXPECT_EQ(cut, std::string(199, 'a'));
}

std::string part(std::string_view head, std::string_view data) {
  return "--xX-1\r\nContent-Disposition: form-data; " + std::string(head) + "\r\n\r\n" + std::string(data) +
         "\r\n";
}
const std::string kEnd = "--xX-1--\r\n";

std::string upload(std::string body, const MultipartLimits& limits = {}, bool chunked = true) {
  const auto handler = [&limits](Request& req, ResponseWriter& res) {
    std::string out;
    Multipart form(req, limits);
    for (Part& each : form) {
      out.append(each.name())
          .append(each.is_file() ? "(" + *each.file_name() + "," + std::string(each.content_type()) + ")"
                                 : "");
      out += "=" + each.text() + "|";
    }
    res.text(out);
  };
  const CallResult res =
      call(handler, "POST /",
           {.headers = {{"Content-Type", std::string(kType)}}, .body = std::move(body), .chunked = chunked});
  return res.status == 200 ? res.body : std::to_string(res.status);
}

TEST(MultipartTest, FieldsAndFiles) {
  EXPECT_EQ(upload(part("name=\"a\"", "1") +
                   part("name=b; filename=\"x.txt\"\r\ncontent-type: text/plain", "two\r\nlines") +
                   part("name=\"a\"", "") + kEnd),
            "a=1|b(x.txt,text/plain)=two\r\nlines|a=|");
  EXPECT_EQ(upload(kEnd), "");
  EXPECT_EQ(upload("--xX-1\r\nContent-Type: text/plain\r\n\r\n1\r\n" + kEnd), "400");
  EXPECT_EQ(upload(part("name=a\r\nContent-Transfer-Encoding: base64", "MQ==") + kEnd), "415");
  EXPECT_EQ(upload(part("name=a\r\ncontent-disposition: form-data; name=b", "1") + kEnd), "400");
  EXPECT_EQ(upload(part("name=a; filename=b\r\nContent-Type: a/b\r\nContent-Type: a/b", "1") + kEnd), "400");
  EXPECT_EQ(upload(part("name=a\r\nX-More: 1\r\nX-More: 2", "1") + kEnd), "a=1|");
  EXPECT_EQ(upload(part("name=a\r\nContent-Transfer-Encoding: 8BIT", "1") + kEnd), "a=1|");
  const auto none = [](Request& req, ResponseWriter&) { Multipart form(req); };
  EXPECT_EQ(call(none, "POST /", {.headers = {{"Content-Type", "text/plain"}}, .body = "x"}).status, 415);
  EXPECT_EQ(call(none, "POST /", {.headers = {{"Content-Type", "multipart/form-data"}}, .body = "x"}).status,
            400);
  EXPECT_EQ(call(none, "POST /", {.body = "x"}).status, 415);
}

TEST(MultipartTest, LimitsAreExact) {
  const std::string two = part("name=a", "12345") + part("name=b; filename=c", "123456") + kEnd;
  EXPECT_EQ(upload(two, {.parts_max = 2}), "a=12345|b(c,)=123456|");
  EXPECT_EQ(upload(two, {.parts_max = 1}), "413");
  EXPECT_EQ(upload(two, {.field_bytes_max = 6}).size(), 21u);
  EXPECT_EQ(upload(part("name=a", "12345") + kEnd, {.field_bytes_max = 5}), "a=12345|");
  EXPECT_EQ(upload(part("name=a", "12345") + kEnd, {.field_bytes_max = 4}), "413");
  EXPECT_EQ(upload(two, {.file_bytes_max = 6}).size(), 21u);
  EXPECT_EQ(upload(two, {.file_bytes_max = 5}), "413");
  for (const bool chunked : {false, true}) {
    EXPECT_EQ(upload(two, {.total_bytes_max = two.size()}, chunked).size(), 21u);
    EXPECT_EQ(upload(two, {.total_bytes_max = two.size() - 1}, chunked), "413");
  }
  EXPECT_EQ(upload(part("name=a", "1") + kEnd, {.header_bytes_max = 38}), "a=1|");
  EXPECT_EQ(upload(part("name=a", "1") + kEnd, {.header_bytes_max = 37}), "413");
}

TEST(MultipartTest, WhatIsSkippedCountsAsWell) {
  const auto handler = [](Request& req, ResponseWriter&) {
    Multipart form(req, {.file_bytes_max = 5});
    for (Part& each : form) (void)each.name();
  };
  const CallResult res = call(handler, "POST /",
                              {.headers = {{"Content-Type", std::string(kType)}},
                               .body = part("name=b; filename=c", "123456") + kEnd});
  EXPECT_EQ(res.status, 413);
}

class SavedUploads : public ::testing::Test {
 protected:
  SavedUploads() {
    std::string name = (std::filesystem::temp_directory_path() / "tuza-upload-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~SavedUploads() override { std::filesystem::remove_all(folder_); }

  // The status, or the result of Part::save.
  int save(const std::string& body, const SaveOptions& options = {}, const MultipartLimits& limits = {}) {
    int status = 0;
    tuza::run([&] {
      const auto handler = [&](Request& req, ResponseWriter&) {
        Multipart form(req, limits);
        for (Part& each : form) saved_ = each.save(folder_.string(), options);
      };
      const CallResult res =
          call(handler, "POST /", {.headers = {{"Content-Type", std::string(kType)}}, .body = body});
      status = res.status;
      exception_ = res.exception;
    });
    return status;
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
  SavedFile saved_;
  std::exception_ptr exception_;
};

TEST_F(SavedUploads, HaveNamesOfTheServer) {
  const std::string data(100'000, 'd');
  const std::string body = part("name=f; filename=\"../../evil\"", data) + kEnd;
  EXPECT_EQ(save(body), 200);
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(saved_.bytes, data.size());
  EXPECT_EQ(saved_.name.size(), 32u);
  EXPECT_EQ(saved_.path, folder_.string() + "/" + saved_.name);
  EXPECT_EQ(content(saved_.name), data);
  EXPECT_EQ(std::filesystem::status(saved_.path).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(save(body, {.name = "mine", .sync = true}), 200);
  EXPECT_EQ(save(part("name=f; filename=x", "new") + kEnd, {.name = "mine"}), 200);
  EXPECT_EQ(content("mine"), "new");
  EXPECT_EQ(files(), 2u);
  for (const char* name : {".", "..", "a/b", "/a"}) EXPECT_EQ(save(body, {.name = name}), 500) << name;
  EXPECT_EQ(files(), 2u);
}

TEST_F(SavedUploads, LeaveNothingBehindIfTheyFail) {
  const std::string file = part("name=f; filename=x", std::string(100'000, 'd'));
  EXPECT_EQ(save(file), 400) << "cut off";
  EXPECT_EQ(save(file + kEnd, {}, {.file_bytes_max = 99'999}), 413);
  EXPECT_EQ(save(file + kEnd, {}, {.total_bytes_max = 90'000}), 413);
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_EQ(save(file + kEnd, {.name = "taken"}), 500) << "a folder has that name";
  std::filesystem::remove(folder_ / "taken");
  EXPECT_EQ(files(), 0u);
  std::filesystem::remove(folder_);
  EXPECT_EQ(save(file + kEnd), 500);
  EXPECT_THROW(std::rethrow_exception(exception_), std::runtime_error);
}

// The system refuses to let the file grow: by a limit of the process, and on a full disk where the test may mount one.
TEST_F(SavedUploads, AFullDiskIs507AndLeavesNothing) {
  const std::string body = part("name=f; filename=x", std::string(300'000, 'd')) + kEnd;
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handled = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const int status = save(body);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handled);
  EXPECT_EQ(status, 507);
  EXPECT_EQ(files(), 0u);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=128k") == 0) {
    EXPECT_EQ(save(body), 507);
    EXPECT_EQ(files(), 0u);
    EXPECT_EQ(save(part("name=f; filename=x", std::string(100'000, 'd')) + kEnd), 200)
        << "there is room again";
    ::umount(folder_.c_str());
  }
}

}  // namespace
}  // namespace tuza::http::testing
