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
#include <llhttp.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;
using Fields = std::vector<std::pair<std::string, std::string>>;

enum class Verdict : std::uint8_t { kIncomplete, kAccepted, kRejected };

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
  for (const auto& [name, value] : o.fields) text.append(" | ").append(name).append("=").append(value);
  return text;
}

Outcome rejection(const ParseError& error) {
  return {.verdict = Verdict::kRejected, .code = error.code, .reason = std::string(error.text)};
}

// Our parser and framing. The bytes arrive in pieces that end at `ends`; each time they move to an allocation of exactly
// their size, so that AddressSanitizer sees every byte read too many. `seen` receives the bytes after parsing, which
// may replace tabs.
Outcome ours(std::string_view bytes, const std::vector<std::size_t>& ends, const HeadLimits& limits,
             std::string* seen = nullptr) {
  const auto head = std::make_unique<RequestHead>();
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
    if (seen != nullptr) seen->assign(buffer.get(), have);
    if (!complete) return rejection(complete.error());
    if (!*complete) continue;
    const char* base = buffer.get();
    if (const auto framed = frame_request(base, *head); !framed) return rejection(framed.error());
    Outcome o{.verdict = Verdict::kAccepted,
              .method = std::string(name(head->method)),
              .target = std::string(head->target.in(base)),
              .version_minor = head->version_minor,
              .chunked = head->chunked,
              .content_length = head->content_length,
              .bytes = head->bytes};
    for (std::uint32_t i = 0; i < head->field_count; ++i) {
      const Head::Field& field = head->fields[i];
      o.fields.emplace_back(field.name.in(base), trim(field.value.in(base)));
    }
    return o;
  }
  return {};
}

// llhttp as it comes.
struct Plain {
  Outcome outcome;
  bool complete = false;

  static Plain& self(llhttp_t* p) { return *static_cast<Plain*>(p->data); }
};

Outcome plain_llhttp(const std::string& bytes) {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_url = [](llhttp_t* p, const char* at, std::size_t size) {
    Plain::self(p).outcome.target.append(at, size);
    return 0;
  };
  settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) {
    Plain::self(p).outcome.fields.emplace_back(std::string(at, size), "");
    return 0;
  };
  settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) {
    Plain::self(p).outcome.fields.back().second.append(at, size);
    return 0;
  };
  settings.on_headers_complete = [](llhttp_t* p) {
    Plain::self(p).complete = true;
    return static_cast<int>(HPE_PAUSED);
  };
  Plain plain;
  llhttp_t parser;
  llhttp_init(&parser, HTTP_REQUEST, &settings);
  parser.data = &plain;
  const llhttp_errno_t error = llhttp_execute(&parser, bytes.data(), bytes.size());
  Outcome& o = plain.outcome;
  if (!plain.complete) {
    if (error != HPE_OK) o.verdict = Verdict::kRejected;
    return o;
  }
  o.verdict = Verdict::kAccepted;
  o.method = llhttp_method_name(static_cast<llhttp_method_t>(parser.method));
  o.version_minor = parser.http_minor;
  o.chunked = (parser.flags & F_CHUNKED) != 0;
  o.content_length = (parser.flags & F_CONTENT_LENGTH) != 0 ? parser.content_length : 0;
  o.bytes = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - bytes.data());
  for (auto& [name, value] : o.fields) value = std::string(trim(value));
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
  const std::size_t last = std::min(bytes.find(' ', std::min(first + 1, bytes.size())), line);
  return bytes.substr(0, first) + narrow(bytes.substr(first, last - first)) + bytes.substr(last);
}

// An accepted head, read in the simplest way.
Outcome by_lines(std::string_view text) {
  Outcome o{.verdict = Verdict::kAccepted};
  const std::size_t all = text.size();
  while (text.starts_with("\r\n")) text.remove_prefix(2);
  const auto line = [&text] {
    const std::size_t end = text.find("\r\n");
    expect(end != std::string_view::npos, "an accepted head consists of lines that end in CRLF", text);
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end + 2);
    return taken;
  };
  const std::string_view request = line();
  const std::size_t first = request.find(' '), last = request.rfind(' ');
  expect(first < last, "a request line has two spaces", request);
  o.method = request.substr(0, first);
  o.target = request.substr(first + 1, last - first - 1);
  o.version_minor = request.back() - '0';
  for (std::string_view field = line(); !field.empty(); field = line()) {
    const std::size_t colon = field.find(':');
    expect(colon != std::string_view::npos, "a field line has a colon", field);
    o.fields.emplace_back(field.substr(0, colon), trim(field.substr(colon + 1)));
    const auto& [name, value] = o.fields.back();
    if (equals_ignoring_case(name, "Transfer-Encoding")) o.chunked = true;
    if (equals_ignoring_case(name, "Content-Length")) {
      o.content_length = 0;
      for (const char c : value)
        o.content_length = o.content_length * 10 + static_cast<std::uint64_t>(c - '0');
    }
  }
  o.bytes = all - text.size();
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
    const std::size_t line = before.substr(0, i).rfind('\n') + 1;  // 0 if there is none
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

  const std::size_t at = 1 + split % bytes.size();
  std::vector<std::size_t> ends{at};
  if (at < bytes.size()) ends.push_back(bytes.size());
  const Outcome halves = ours(bytes, ends, limits);
  expect(same(whole, halves), "a split does not change the outcome",
         describe(whole) + "\nsplit: " + describe(halves));
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < bytes.size(); i += bytes.size() > 512 ? 7 : 1) every.push_back(i);
  every.push_back(bytes.size());
  const Outcome pieces = ours(bytes, every, limits);
  expect(same(whole, pieces), "single bytes do not change the outcome",
         describe(whole) + "\nbytes: " + describe(pieces));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_head({data, size});
  return 0;
}
