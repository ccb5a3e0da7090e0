// Fuzz target: multipart bodies, the fields of their parts, and the names of files.
//
// The parts are those that a reference finds in the whole text; the data arrives unchanged, and whole, in pieces of any
// size, and byte by byte give the same. A safe file name is one component of a path, and safe again.
//
// The input: size of the first piece, size of the others, the body. Its boundary is "b".
//
// Covers: http/multipart/body.cpp http/multipart/disposition.cpp
#include <tuza/http/multipart/body.h>
#include <tuza/http/multipart/disposition.h>
#include <tuza/http/status_error.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <span>
#include <string>

namespace tuza::http {
namespace {

using fuzz::expect;

constexpr std::size_t kHeadBytesMax = 64;
constexpr std::string_view kMalformed = "malformed";

class Pieces final : public MultipartSource {
 public:
  Pieces(std::string_view body, std::size_t first, std::size_t each)
      : left_(body), next_(first), each_(each) {}
  std::size_t read(std::span<char> into) override {
    expect(!into.empty(), "there is room for what is read");
    const std::size_t n = std::min({into.size(), left_.size(), next_});
    std::copy_n(left_.begin(), n, into.begin());
    left_.remove_prefix(n);
    next_ = each_;
    return n;
  }

 private:
  std::string_view left_;
  std::size_t next_, each_;
};

std::string split(std::string_view body, std::size_t first, std::size_t each) {
  Pieces source(body, first, each);
  MultipartBody multipart(source, "b", kHeadBytesMax);
  std::string out;
  try {
    while (multipart.next_part()) {
      out.append("[").append(multipart.head()).append("]{");
      for (std::string_view data; !(data = multipart.data()).empty();) out += data;
      out += "}";
    }
  } catch (const StatusError&) {
    return std::string(kMalformed);
  }
  return out;
}

// The same, of the whole text, as RFC 2046 describes it.
std::string reference(std::string_view body) {
  const std::string text = "\r\n" + std::string(body);
  const std::string delimiter = "\r\n--b";
  std::string out;
  std::size_t at = text.find(delimiter);
  for (;;) {
    if (at == std::string::npos) return std::string(kMalformed);
    at += delimiter.size();
    if (text.compare(at, 2, "--") == 0) {
      const std::size_t end = std::min(text.find_first_not_of(" \t", at + 2), text.size());
      return end == text.size() || text[end] == '\r' ? out : std::string(kMalformed);
    }
    const std::size_t line = std::min(text.find_first_not_of(" \t", at), text.size());
    const std::size_t head_end = text.find("\r\n\r\n", line);
    const bool good = line - at <= kHeadBytesMax && text.compare(line, 2, "\r\n") == 0 &&
                      head_end != std::string::npos && head_end - line <= kHeadBytesMax + 2;
    if (!good) return std::string(kMalformed);
    out += "[" + (head_end == line ? "" : text.substr(line + 2, head_end - line - 2)) + "]{";
    // The CRLF that ends the head may be the delimiter's: the part has no data then.
    const std::size_t next = text.find(delimiter, head_end + 2);
    if (next == std::string::npos) return std::string(kMalformed);
    if (next > head_end + 2) out += text.substr(head_end + 4, next - head_end - 4);
    out += "}";
    at = next;
  }
}

void check_names(std::string_view text) {
  const std::string safe = safe_file_name(text);
  expect(!safe.empty() && safe.size() <= 200 && safe.front() != '.', "a safe name is a name", safe);
  expect(std::ranges::none_of(
             safe, [](char c) { return (c >= 0 && c < ' ') || c == '/' || c == '\\' || c == 0x7f; }),
         "a safe name is one component, without control characters", safe);
  expect(safe_file_name(safe) == safe, "a safe name stays as it is", safe);
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto found = parse_disposition(line);
  expect(!found || found->name.size() <= line.size(), "a name is no longer than its field", line);
  std::string quoted;
  for (const char c : text) {
    quoted += c == '"' || c == '\\' ? std::string{'\\', c} : c == '%' ? std::string() : std::string{c};
  }
  std::string plain(text);
  std::erase(plain, '%');
  const auto again = parse_disposition("form-data; name=\"" + quoted + "\"");
  expect(again && again->name == plain, "a quoted name is found again", text);
}

void check_multipart(fuzz::Input input) {
  const std::size_t first = input.byte() + std::size_t{1}, each = input.byte() + std::size_t{1};
  const std::string_view body = input.rest();
  const std::string whole = split(body, SIZE_MAX, SIZE_MAX);
  expect(whole == reference(body), "the parts are those of the reference", whole);
  expect(split(body, first, each) == whole, "pieces make no difference", whole);
  expect(split(body, 1, 1) == whole, "byte by byte makes no difference", whole);
  check_names(body);
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_multipart({data, size});
  return 0;
}
