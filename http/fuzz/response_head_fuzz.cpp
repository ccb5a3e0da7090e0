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
#include <llhttp.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;
using Fields = std::vector<std::pair<std::string, std::string>>;

enum class Verdict : std::uint8_t { kIncomplete, kAccepted, kRejected };

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
  for (const auto& [name, value] : a.fields) text.append(" | ").append(name).append("=").append(value);
  return text;
}

std::string body_of(const ResponseHead& head) {
  expect(!head.until_close || (!head.chunked && !head.has_content_length && !head.keep_alive),
         "a body that ends with the connection ends in no other way");
  expect(!head.chunked || !head.has_content_length, "a body in chunks has no length");
  if (head.chunked) return "chunked";
  return head.until_close ? "until close" : std::to_string(head.content_length);
}

// The bytes arrive in pieces that end at `ends`; each time they move to an allocation of exactly their size, so that
// AddressSanitizer sees every byte read too many.
Answer ours(std::string_view bytes, const std::vector<std::size_t>& ends, const HeadLimits& limits,
            Method asked) {
  const auto head = std::make_unique<ResponseHead>();
  HeadParser parser;
  parser.begin(*head, limits);
  std::unique_ptr<char[]> buffer;
  std::size_t have = 0;
  for (const std::size_t end : ends) {
    auto larger = std::make_unique<char[]>(end);
    if (have > 0) std::memcpy(larger.get(), buffer.get(), have);
    std::memcpy(larger.get() + have, bytes.data() + have, end - have);
    buffer = std::move(larger);
    const auto complete = parser.feed_head(buffer.get(), end - std::exchange(have, end));
    if (!complete) return {.verdict = Verdict::kRejected};
    if (!*complete) continue;
    const char* base = buffer.get();
    if (!frame_response(base, *head, asked)) return {.verdict = Verdict::kRejected};
    Answer a{.verdict = Verdict::kAccepted,
             .status = head->status,
             .reason = std::string(head->reason.in(base)),
             .body = body_of(*head),
             .bytes = head->bytes};
    for (std::uint32_t i = 0; i < head->field_count; ++i) {
      const Head::Field& field = head->fields[i];
      a.fields.emplace_back(field.name.in(base), trim(field.value.in(base)));
    }
    expect(a.bytes <= limits.head_bytes && a.fields.size() <= limits.fields, "limits are obeyed",
           describe(a));
    return a;
  }
  return {};
}

// llhttp as it comes.
struct Plain {
  Answer answer;
  bool complete = false;

  static Plain& self(llhttp_t* p) { return *static_cast<Plain*>(p->data); }
};

Answer plain_llhttp(std::string_view bytes) {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) {
    Plain::self(p).answer.fields.emplace_back(std::string(at, size), "");
    return 0;
  };
  settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) {
    Plain::self(p).answer.fields.back().second.append(at, size);
    return 0;
  };
  settings.on_headers_complete = [](llhttp_t* p) {
    Plain::self(p).complete = true;
    return static_cast<int>(HPE_PAUSED);
  };
  Plain plain;
  llhttp_t parser;
  llhttp_init(&parser, HTTP_RESPONSE, &settings);
  parser.data = &plain;
  const llhttp_errno_t error = llhttp_execute(&parser, bytes.data(), bytes.size());
  Answer& a = plain.answer;
  if (!plain.complete) {
    if (error != HPE_OK) a.verdict = Verdict::kRejected;
    return a;
  }
  a.verdict = Verdict::kAccepted;
  a.status = parser.status_code;
  a.bytes = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - bytes.data());
  for (auto& [name, value] : a.fields) value = std::string(trim(value));
  return a;
}

// An accepted head, read in the simplest way.
Answer by_lines(std::string_view text) {
  Answer a{.verdict = Verdict::kAccepted};
  const std::size_t all = text.size();
  const auto line = [&text] {
    const std::size_t end = text.find("\r\n");
    expect(end != std::string_view::npos, "an accepted head consists of lines that end in CRLF", text);
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end + 2);
    return taken;
  };
  const std::string_view status = line();
  expect(status.size() >= 12, "a status line has a version and a status", status);
  for (const char c : status.substr(9, 3)) a.status = a.status * 10 + (c - '0');
  a.reason = status.substr(std::min<std::size_t>(13, status.size()));
  for (std::string_view field = line(); !field.empty(); field = line()) {
    const std::size_t colon = field.find(':');
    expect(colon != std::string_view::npos, "a field line has a colon", field);
    a.fields.emplace_back(field.substr(0, colon), trim(field.substr(colon + 1)));
  }
  a.bytes = all - text.size();
  return a;
}

void compare(std::string_view bytes, const Answer& own) {
  const Answer plain = plain_llhttp(bytes);
  // llhttp 8 does not accept tabs behind a Content-Length: HeadParser.
  const bool tabs = bytes.contains('\t');
  if (own.verdict != Verdict::kAccepted) {
    expect(plain.verdict != Verdict::kRejected || own.verdict == Verdict::kRejected,
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
  const std::size_t at = 1 + split % bytes.size();
  std::vector<std::size_t> ends{at};
  if (at < bytes.size()) ends.push_back(bytes.size());
  const Answer halves = ours(bytes, ends, limits, asked);
  expect(whole == halves, "a split does not change the outcome",
         describe(whole) + "\nsplit: " + describe(halves));
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < bytes.size(); i += bytes.size() > 512 ? 7 : 1) every.push_back(i);
  every.push_back(bytes.size());
  const Answer pieces = ours(bytes, every, limits, asked);
  expect(whole == pieces, "single bytes do not change the outcome",
         describe(whole) + "\nbytes: " + describe(pieces));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_response_head({data, size});
  return 0;
}
