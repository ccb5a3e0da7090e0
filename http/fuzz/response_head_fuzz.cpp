// Fuzz target: the head of a response, against plain llhttp with all lenient flags off.
//
//   - A head that we accept is accepted by llhttp, with the same status, fields and size, and by a reader that splits lines at
//     CRLF and knows nothing else. Its body ends in exactly one way.
//   - A head that llhttp rejects, we reject.
//   - The outcome does not depend on how the bytes arrive.
//
// The input: limits and method, split point (2 bytes), head.
//
// Covers: http/wire/head_parser.cpp, http/wire/message_framing.cpp, http/wire/response_framing.cpp
#include <tuza/http/fuzz/heads.h>
#include <tuza/http/wire/framing.h>

#include <algorithm>
#include <memory>

namespace tuza::http {
namespace {

using fuzz::expect;
using namespace fuzz_heads;

struct Answer {
  Verdict verdict = Verdict::kIncomplete;
  int status = 0;
  std::string reason = {};
  Fields fields = {};     // values without surrounding white space
  std::string body = {};  // how it ends
  std::size_t bytes = 0;

  bool operator==(const Answer&) const = default;
};

std::string describe(const Answer& a) {
  std::string text = "verdict " + std::to_string(static_cast<int>(a.verdict)) + " | " +
                     std::to_string(a.status) + " " + a.reason + " " + a.body + " bytes " +
                     std::to_string(a.bytes);
  append(text, a.fields);
  return text;
}

std::string body_of(const ResponseHead& head) {
  expect(!head.until_close || (!head.chunked && !head.has_content_length && !head.keep_alive),
         "a body that ends with the connection ends in no other way");
  expect(!head.chunked || !head.has_content_length, "a body in chunks has no length");
  if (head.chunked) return "chunked";
  return head.until_close ? "until close" : std::to_string(head.content_length);
}

Answer ours(std::string_view bytes, const std::vector<std::size_t>& ends, const HeadLimits& limits,
            Method asked) {
  const auto head = std::make_unique<ResponseHead>();
  HeadParser parser;
  parser.begin(*head, limits);
  const auto complete = [&](const char* base) -> Answer {
    if (!frame_response(base, *head, asked)) return {.verdict = Verdict::kRejected};
    Answer a{.verdict = Verdict::kAccepted,
             .status = head->status,
             .reason = std::string(head->reason.in(base)),
             .fields = fields_of(*head, base),
             .body = body_of(*head),
             .bytes = head->bytes};
    expect(a.bytes <= limits.head_bytes && a.fields.size() <= limits.fields, "limits are obeyed",
           describe(a));
    return a;
  };
  const auto refused = [](const ParseError&) { return Answer{.verdict = Verdict::kRejected}; };
  return feed_in_pieces<Answer>(parser, bytes, ends, complete, refused);
}

// A higher minor version is taken as 1 (RFC 9110 2.5), which llhttp refuses.
std::string with_lower_minor(std::string_view bytes) {
  constexpr std::string_view kMajor = "HTTP/1.";
  std::string lower(bytes);
  if (bytes.starts_with(kMajor) && bytes.size() > kMajor.size()) {
    char& minor = lower[kMajor.size()];
    if (minor >= '2' && minor <= '9') minor = '1';
  }
  return lower;
}

Answer plain_llhttp(std::string_view text) {
  const std::string bytes = with_lower_minor(text);
  PlainHead plain(HTTP_RESPONSE, bytes);
  return {.verdict = plain.verdict,
          .status = plain.parser.status_code,
          .fields = std::move(plain.fields),
          .bytes = plain.size};
}

// An accepted head, read in the simplest way.
Answer by_lines(std::string_view text) {
  Answer a{.verdict = Verdict::kAccepted};
  Lines lines(text);
  const std::string_view status = lines.next();
  expect(status.size() >= 12, "a status line has a version and a status", status);
  for (const char c : status.substr(9, 3)) a.status = a.status * 10 + (c - '0');
  a.reason = status.substr(std::min<std::size_t>(13, status.size()));
  a.fields = lines.fields();
  a.bytes = lines.taken();
  return a;
}

void compare(std::string_view bytes, const Answer& own) {
  const Answer plain = plain_llhttp(bytes);
  // llhttp 8 does not accept tabs behind a Content-Length: HeadParser.
  const bool tabs = bytes.contains('\t');
  if (own.verdict != Verdict::kAccepted) {
    expect(plain.verdict != Verdict::kRejected || own.verdict == Verdict::kRejected || tabs,
           "what llhttp rejects is rejected", describe(own));
    return;
  }
  Answer lines = by_lines(bytes.substr(0, own.bytes));
  lines.body = own.body;
  expect(own == lines, "the head is what its lines say", describe(own) + "\nlines: " + describe(lines));
  if (tabs) return;
  Answer expected = plain;
  expected.reason = own.reason;
  expected.body = own.body;
  expect(own == expected, "what is accepted, llhttp accepts with the same meaning",
         describe(own) + "\nllhttp: " + describe(plain));
}

void check_response_head(fuzz::Input input) {
  const std::uint8_t chosen = input.byte();
  const std::size_t split = input.number(2);
  const std::string_view bytes = input.rest();
  if (bytes.empty()) return;
  HeadLimits limits;
  if ((chosen & 1) != 0) limits.head_bytes = 64 + (chosen & 0xf0);
  if ((chosen & 2) != 0) limits.fields = 1 + (chosen >> 4);
  const Method asked = (chosen & 4) != 0   ? Method::kHead
                       : (chosen & 8) != 0 ? Method::kConnect
                                           : Method::kGet;

  const Answer whole = ours(bytes, {bytes.size()}, limits, asked);
  compare(bytes, whole);
  const Answer halves = ours(bytes, two_pieces(bytes, split), limits, asked);
  expect(whole == halves, "a split does not change the outcome",
         describe(whole) + "\nsplit: " + describe(halves));
  const Answer pieces = ours(bytes, single_bytes(bytes), limits, asked);
  expect(whole == pieces, "single bytes do not change the outcome",
         describe(whole) + "\nbytes: " + describe(pieces));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_response_head({data, size});
  return 0;
}
