// Fuzz target: the head of a request, against plain llhttp with all lenient flags off.
//
//   - A head that we accept is accepted by llhttp (with letters in place of bytes above 0x7f in the target), with the same method, target, version, fields, framing and size, and
//     by a reader that splits lines at CRLF and knows nothing else.
//   - A head that llhttp rejects, we reject. A head that only we reject breaks one of the rules that are ours.
//   - The outcome does not depend on how the bytes arrive.
//
// The input: limits, split point (2 bytes), head.
//
// Covers: http/wire/head_parser.cpp, http/wire/message_framing.cpp, http/wire/request_framing.cpp, http/wire/host.cpp, http/wire/chars.h
#include <tuza/http/fuzz/heads.h>
#include <tuza/http/wire/framing.h>

#include <algorithm>
#include <memory>

namespace tuza::http {
namespace {

using fuzz::expect;
using namespace fuzz_heads;

struct Outcome {
  Verdict verdict = Verdict::kIncomplete;
  ParseErrc code{};         // of a rejection
  std::string reason = {};  // of a rejection
  std::string method = {}, target = {};
  int version_minor = 0;
  Fields fields = {};  // values without surrounding white space
  bool chunked = false;
  std::uint64_t content_length = 0;
  std::size_t bytes = 0;

  bool operator==(const Outcome&) const = default;
};

std::string describe(const Outcome& o) {
  std::string text = "verdict " + std::to_string(static_cast<int>(o.verdict)) + " code " +
                     std::to_string(static_cast<int>(o.code)) + " " + o.reason + " | " + o.method + " " +
                     o.target + " 1." + std::to_string(o.version_minor) +
                     (o.chunked ? " chunked " : " length ") + std::to_string(o.content_length) + " bytes " +
                     std::to_string(o.bytes);
  append(text, o.fields);
  return text;
}

Outcome rejection(const ParseError& error) {
  return {.verdict = Verdict::kRejected, .code = error.code, .reason = std::string(error.text)};
}

// Our parser and framing.
Outcome ours(std::string_view bytes, const std::vector<std::size_t>& ends, const HeadLimits& limits,
             std::string* seen = nullptr) {
  const auto head = std::make_unique<RequestHead>();
  HeadParser parser;
  parser.begin(*head, limits);
  const auto complete = [&](const char* base) -> Outcome {
    if (const auto framed = frame_request(base, *head); !framed) return rejection(framed.error());
    return {.verdict = Verdict::kAccepted,
            .method = std::string(name(head->method)),
            .target = std::string(head->target.in(base)),
            .version_minor = head->version_minor,
            .fields = fields_of(*head, base),
            .chunked = head->chunked,
            .content_length = head->content_length,
            .bytes = head->bytes};
  };
  return feed_in_pieces<Outcome>(parser, bytes, ends, complete, rejection, seen);
}

Outcome plain_llhttp(const std::string& bytes) {
  PlainHead plain(HTTP_REQUEST, bytes);
  Outcome o{.verdict = plain.verdict, .target = std::move(plain.target), .fields = std::move(plain.fields)};
  if (o.verdict != Verdict::kAccepted) return o;
  const llhttp_t& parser = plain.parser;
  o.method = llhttp_method_name(static_cast<llhttp_method_t>(parser.method));
  o.version_minor = parser.http_minor;
  o.chunked = (parser.flags & F_CHUNKED) != 0;
  o.content_length = (parser.flags & F_CONTENT_LENGTH) != 0 ? parser.content_length : 0;
  o.bytes = plain.size;
  return o;
}

// llhttp refuses bytes above 0x7f in a target, if it is built strictly: it is compared with letters in their place.
std::string narrow(std::string text) {
  for (char& c : text) {
    if ((static_cast<unsigned char>(c) & 0x80) != 0) c = 'x';
  }
  return text;
}
std::string with_narrow_target(const std::string& bytes) {
  const std::size_t begin = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
  const std::size_t line = std::min(bytes.find_first_of("\r\n", begin), bytes.size());
  const std::size_t first = std::min(bytes.find(' ', begin), line);
  const std::size_t target = std::min(bytes.find_first_not_of(' ', first), line);  // llhttp skips spaces
  const std::size_t last = std::min(bytes.find(' ', target), line);
  return bytes.substr(0, first) + narrow(bytes.substr(first, last - first)) + bytes.substr(last);
}

// An accepted head, read in the simplest way.
Outcome by_lines(std::string_view text) {
  Outcome o{.verdict = Verdict::kAccepted};
  Lines lines(text);
  lines.skip_empty();
  const std::string_view request = lines.next();
  const std::size_t first = request.find(' '), last = request.rfind(' ');
  expect(first < last, "a request line has two spaces", request);
  o.method = request.substr(0, first);
  o.target = request.substr(first + 1, last - first - 1);
  o.version_minor = request.back() - '0';
  o.fields = lines.fields();
  for (const auto& [name, value] : o.fields) {
    if (equals_ignoring_case(name, "Transfer-Encoding")) o.chunked = true;
    if (equals_ignoring_case(name, "Content-Length")) {
      o.content_length = 0;
      for (const char c : value)
        o.content_length = o.content_length * 10 + static_cast<std::uint64_t>(c - '0');
    }
  }
  o.bytes = lines.taken();
  return o;
}

// What a head may break although llhttp accepts it: the rules of framing, and limits.
bool is_our_rule(const Outcome& o) {
  constexpr std::string_view kRules[] = {
      // limits
      "request line too long", "header fields too large", "too many header fields",
      // lines
      "line does not end in CRLF", "carriage return inside a line", "folded header field",
      // the request line
      "malformed request line", "method not implemented", "malformed method", "malformed HTTP version",
      "HTTP version not supported", "CONNECT is not implemented", "malformed request target",
      "request target without a host",
      // fields
      "unknown expectation", "header field without a name", "malformed header field name", "missing Host",
      "empty Host", "more than one Host", "malformed Host",
      // the length of the body
      "both Content-Length and Transfer-Encoding", "Transfer-Encoding in HTTP/1.0",
      "more than one Transfer-Encoding", "transfer coding not implemented", "malformed Transfer-Encoding",
      "more than one Content-Length", "malformed Content-Length"};
  return std::ranges::find(kRules, o.reason) != std::end(kRules);
}

// The parser may replace tabs around the value of a Content-Length by spaces, and a higher minor version by 1; nothing else.
void check_replaced(std::string_view before, std::string_view after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i] == after[i]) continue;
    if (after[i] == '1') {
      expect(before[i] >= '2' && before[i] <= '9' && before.substr(0, i).ends_with(" HTTP/1."),
             "only a minor version becomes 1", after);
      continue;
    }
    expect(before[i] == '\t' && after[i] == ' ', "only tabs are replaced, by spaces", after);
    std::size_t line = before.substr(0, i).rfind('\n') + 1;  // 0 if there is none
    // The head is refused then, but only when it is complete.
    while (line > 0 && (before[line] == ' ' || before[line] == '\t'))
      line = before.substr(0, line - 1).rfind('\n') + 1;
    expect(equals_ignoring_case(before.substr(line, 15), "Content-Length:"),
           "tabs are replaced only in Content-Length", after);
  }
}

void compare(std::string_view bytes, const Outcome& own, const std::string& seen, const HeadLimits& limits) {
  check_replaced(bytes, seen);
  const Outcome plain = plain_llhttp(with_narrow_target(seen + std::string(bytes.substr(seen.size()))));
  if (own.verdict != Verdict::kAccepted) {
    if (plain.verdict == Verdict::kRejected) {
      // The end of an unknown method is waited for; llhttp stops earlier.
      const bool in_method = bytes.find_first_of(" ", std::min(bytes.find_first_not_of("\r\n"),
                                                               bytes.size())) == std::string_view::npos;
      expect(own.verdict == Verdict::kRejected || in_method, "what llhttp rejects is rejected",
             describe(own));
    } else if (own.verdict == Verdict::kRejected) {
      expect(is_our_rule(own), "what llhttp does not reject is rejected only by a rule of ours",
             describe(own));
    } else {
      expect(plain.verdict == Verdict::kIncomplete, "a complete head is accepted or rejected",
             describe(plain));
    }
    return;
  }
  expect(own.bytes <= limits.head_bytes && own.fields.size() <= limits.fields &&
             own.target.size() <= limits.start_line_bytes,
         "limits are obeyed", describe(own));
  expect(own == by_lines(std::string_view(seen).substr(0, own.bytes)), "the head is what its lines say",
         describe(own) + "\nlines: " + describe(by_lines(seen)));
  Outcome expected = plain;
  // llhttp 8 does not detect "chunked" beside a tab; HeadParser::expect_chunks().
  if (own.chunked && std::ranges::find(seen, '\t') != seen.end()) expected.chunked = true;
  if (narrow(own.target) == plain.target) expected.target = own.target;
  expect(own == expected, "what is accepted, llhttp accepts with the same meaning",
         describe(own) + "\nllhttp: " + describe(plain));
}

// Of two parts of the same head, either may be found to be wrong first.
bool same(const Outcome& a, const Outcome& b) {
  if (a.verdict == Verdict::kRejected && b.verdict == Verdict::kRejected) return true;
  return a == b;
}

void check_head(fuzz::Input input) {
  const std::uint8_t chosen = input.byte();
  const std::size_t split = input.number(2);
  const std::string_view bytes = input.rest();
  if (bytes.empty()) return;
  HeadLimits limits;
  if ((chosen & 1) != 0) limits.head_bytes = 64 + (chosen & 0xf0);
  if ((chosen & 2) != 0) limits.start_line_bytes = 16;
  if ((chosen & 4) != 0) limits.fields = 1 + (chosen >> 4);

  std::string seen;
  const Outcome whole = ours(bytes, {bytes.size()}, limits, &seen);
  compare(bytes, whole, seen, limits);

  const Outcome halves = ours(bytes, two_pieces(bytes, split), limits);
  expect(same(whole, halves), "a split does not change the outcome",
         describe(whole) + "\nsplit: " + describe(halves));
  const Outcome pieces = ours(bytes, single_bytes(bytes), limits);
  expect(same(whole, pieces), "single bytes do not change the outcome",
         describe(whole) + "\nbytes: " + describe(pieces));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_head({data, size});
  return 0;
}
