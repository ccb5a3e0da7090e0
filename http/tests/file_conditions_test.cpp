// Conditional requests for files: the whole table of RFC 9110 13.2.2.
#include <tuza/http/file_server.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/file_folder.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

// A field as the client may send it, and how it evaluates for the file.
enum class Is { kAbsent, kTrue, kFalse, kIgnored };
struct Sent {
  std::string value;
  Is is;
};
using Column = std::vector<Sent>;

// 13.2.2, step by step, as the RFC writes it.
int expected(bool get, Is if_match, Is unmodified_since, Is none_match, Is modified_since, bool range,
             Is if_range) {
  // 1. "When recipient is the origin server and If-Match is present ... if false, respond 412"
  if (if_match != Is::kAbsent) {
    if (if_match == Is::kFalse) return 412;
    // 2. "... If-Match is not present, and If-Unmodified-Since is present"
  } else if (unmodified_since == Is::kFalse) {
    return 412;
  }
  // 3. "When If-None-Match is present ... if false for GET/HEAD, respond 304"
  if (none_match != Is::kAbsent) {
    if (none_match == Is::kFalse) return 304;
    // 4. "When the method is GET or HEAD, If-None-Match is not present, and If-Modified-Since is present"
  } else if (modified_since == Is::kFalse) {
    return 304;
  }
  // 5. "When the method is GET and both Range and If-Range are present ... otherwise, ignore the Range header field"
  return get && range && (if_range == Is::kAbsent || if_range == Is::kTrue) ? 206 : 200;
}

TEST(FileConditionsTest, TheTableOfRfc9110) {
  const Folder folder;
  const FileServer files(folder.root().string());
  const CallResult plain = call(files, "GET /a.txt");
  const std::string etag(plain.header("ETag").value()), date(plain.header("Last-Modified").value());
  ASSERT_TRUE(etag.starts_with('"')) << "a strong one: the file is old";
  const std::string weak = "W/" + etag, other = "\"other\"";
  const std::string earlier = "Sun, 06 Nov 1994 08:49:36 GMT", later = "Sun, 06 Nov 1994 08:49:38 GMT";
  const Column if_match{{"", Is::kAbsent},   {"*", Is::kTrue},   {etag, Is::kTrue},
                        {other, Is::kFalse}, {weak, Is::kFalse}, {other + ", " + etag, Is::kTrue}};
  const Column unmodified{{"", Is::kAbsent},
                          {date, Is::kTrue},
                          {later, Is::kTrue},
                          {earlier, Is::kFalse},
                          {"never", Is::kIgnored}};
  const Column none_match{{"", Is::kAbsent},  {"*", Is::kFalse},  {etag, Is::kFalse},
                          {other, Is::kTrue}, {weak, Is::kFalse}, {other + "," + weak, Is::kFalse}};
  const Column modified{{"", Is::kAbsent},
                        {date, Is::kFalse},
                        {later, Is::kFalse},
                        {earlier, Is::kTrue},
                        {"never", Is::kIgnored}};
  const Column if_range{{"", Is::kAbsent},   {etag, Is::kTrue},    {date, Is::kFalse},
                        {weak, Is::kFalse},  {other, Is::kFalse},  {earlier, Is::kFalse},
                        {later, Is::kFalse}, {"never", Is::kFalse}};
  std::size_t cases = 0;
  for (const bool get : {true, false}) {
    for (const Sent& a : if_match) {
      for (const Sent& b : unmodified) {
        for (const Sent& c : none_match) {
          for (const Sent& d : modified) {
            for (const bool range : {false, true}) {
              for (const Sent& e : if_range) {
                HeaderFields fields;
                std::string told = get ? "GET" : "HEAD";
                const auto add = [&](const char* name, const std::string& value) {
                  if (value.empty()) return;
                  fields.emplace_back(name, value);
                  told += std::string("; ") + name + ": " + value;
                };
                add("If-Match", a.value);
                add("If-Unmodified-Since", b.value);
                add("If-None-Match", c.value);
                add("If-Modified-Since", d.value);
                add("Range", range ? "bytes=2-3" : "");
                add("If-Range", e.value);
                const CallResult r = call(files, get ? "GET /a.txt" : "HEAD /a.txt", {.headers = fields});
                const int status = expected(get, a.is, b.is, c.is, d.is, range, e.is);
                ASSERT_EQ(r.status, status) << told;
                const std::string_view body = !get || status == 304 ? "" : status == 206 ? "23" : kText;
                ASSERT_EQ(r.body, status == 412 ? (get ? "Precondition Failed\n" : "") : body) << told;
                ASSERT_EQ(r.header("ETag").has_value(), status != 412) << told;
                ++cases;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 2u * 6 * 5 * 6 * 5 * 2 * 8);
}

}  // namespace
}  // namespace tuza::http::testing
