// Router against what Go's ServeMux has answered (go_routes.txt, made by go_routes.go): the same patterns are refused, and the same
// requests get the same pattern and values, 404, 405 with Allow, or a redirect to the same place. Where http/router.h says that
// Tuza differs, this test says how.
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <fstream>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view line, char at) {
  Words words;
  for (const auto part : std::views::split(line, at)) words.emplace_back(part.begin(), part.end());
  return words;
}

std::string in_quotes(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) all.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
  return all + '"';
}

Handler answer(const std::string& pattern) {
  return [pattern](Request& req, ResponseWriter& res) {
    std::string text = in_quotes(pattern);
    for (const char* name : {"x0", "x1", "x2", "rest"}) {
      if (!pattern.contains(std::string("{") + name)) continue;
      text.append(" ").append(name).append("=").append(in_quotes(req.path_value(name).value_or("")));
    }
    res.set_header("X-Answer", text);
  };
}

bool takes(Router& router, const std::string& pattern) {
  try {
    router.handle(pattern, answer(pattern));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool has_method(std::string_view pattern) { return pattern.contains(' '); }

// Of two patterns that Go refuses beside each other, we take those of which one has the narrower path and the other the
// narrower method.
bool may_be_taken(const std::string& pattern, const std::string& other) {
  return has_method(pattern) || has_method(other);
}

// Go escapes anew what is escaped already in the place to which it redirects, or leaves it decoded; and it drops the slash of
// "/dir/." (RFC 3986 5.2.4: "/dir/").
std::string mended(std::string answer, std::string_view target) {
  if (!answer.starts_with("redirect ")) return answer;
  for (std::size_t at = 0; (at = answer.find("%25", at)) != std::string::npos; ++at) answer.erase(at + 1, 2);
  std::string decoded;
  append_unescaped(decoded, answer);
  const bool folder = target.ends_with("/.") || target.ends_with("/..");
  return folder && !decoded.ends_with("/") ? decoded + "/" : decoded;
}

std::string answer_of(const Router& router, const Words& request) {
  const CallResult res =
      call(router, request.at(1) + " " + request.at(3), {.headers = {{"Host", request.at(2)}}});
  if (res.status >= 300 && res.status < 400)
    return "redirect " + std::string(res.header("Location").value_or(""));
  if (res.status == 405) {
    Words allowed;
    for (const std::string& one : split(res.header("Allow").value_or(""), ',')) {
      const std::string method = one.substr(one.find_first_not_of(' '));
      if (method != "OPTIONS") allowed.push_back(method);  // Go's ServeMux does not answer it
    }
    std::ranges::sort(allowed);
    std::string text = "405 ";
    for (const std::string& one : allowed) text += (text.ends_with(' ') ? "" : ",") + one;
    return text;
  }
  if (res.status == 200) return "200 " + std::string(res.header("X-Answer").value_or(""));
  return std::to_string(res.status);
}

TEST(GoRoutesTest, RouterAnswersAsServeMux) {
  std::ifstream file(TUZA_GO_ROUTES);
  ASSERT_TRUE(file);
  Router router;
  Words patterns;
  int asked = 0, refused = 0;
  for (std::string line; std::getline(file, line);) {
    const Words words = split(line, '\t');
    if (line == "set") {
      router = Router();
      patterns.clear();
    } else if (words.at(0) == "+") {
      EXPECT_TRUE(takes(router, words.at(1))) << line;
      patterns.push_back(words.at(1));
    } else if (words.at(0) == "-") {
      ++refused;
      Router two;
      EXPECT_TRUE(takes(two, words.at(2)));
      EXPECT_TRUE(!takes(two, words.at(1)) || may_be_taken(words.at(1), words.at(2))) << line;
    } else if (words.at(0) == "?") {
      ++asked;
      EXPECT_EQ(mended(answer_of(router, words), words.at(3)), mended(words.at(4), words.at(3)))
          << line << "\n"
          << ::testing::PrintToString(patterns);
    }
  }
  EXPECT_GT(asked, 1000);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace tuza::http::testing
