// Fuzz target: a chunked body, against plain llhttp and against a decoder of RFC 9112 7.1 without any leniency.
//
//   - We accept what the decoder accepts, with the same data and the same end, within the limit on bytes that are not data;
//     and nothing else.
//   - What we and llhttp accept ends at the same place with the same data. (llhttp refuses some well-formed extensions.)
//   - The limit is obeyed exactly, and neither data nor outcome depend on how the bytes arrive.
//
// The input: limit, split point (2 bytes), body.
//
// Covers: http/wire/chunk_decoder.cpp
#include <llhttp.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/chunk_decoder.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;

constexpr std::string_view kHead = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

enum class Verdict : std::uint8_t { kIncomplete, kComplete, kRejected };

struct Outcome {
  Verdict verdict = Verdict::kIncomplete;
  std::string data = {};
  std::size_t end = 0;      // of a complete body
  std::string reason = {};  // of a rejection
};

std::string describe(const Outcome& o) {
  return "verdict " + std::to_string(static_cast<int>(o.verdict)) + " " + o.reason + " end " +
         std::to_string(o.end) + " data " + o.data;
}

// Our decoder, fed as the request loop feeds it: each step consumes, the rest is offered again.
Outcome ours(std::string_view bytes, const std::vector<std::size_t>& ends, std::size_t overhead_max) {
  ChunkDecoder decoder;
  decoder.begin(overhead_max);
  Outcome o;
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    const std::vector<char> piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(end));
    std::string_view left(piece.data(), piece.size());
    while (!left.empty()) {
      const auto step = decoder.feed(left);
      if (!step) {
        o.verdict = Verdict::kRejected;
        o.reason = step.error().text;
        return o;
      }
      expect(step->consumed > 0 && step->consumed <= left.size(), "a step consumes some of its input", left);
      o.data += step->data;
      left.remove_prefix(step->consumed);
      at += step->consumed;
      if (!step->complete) continue;
      o.verdict = Verdict::kComplete;
      o.end = at;
      return o;
    }
  }
  return o;
}

Outcome plain_llhttp(std::string_view bytes) {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_body = [](llhttp_t* p, const char* at, std::size_t size) {
    static_cast<Outcome*>(p->data)->data.append(at, size);
    return 0;
  };
  settings.on_message_complete = [](llhttp_t* p) {
    static_cast<Outcome*>(p->data)->verdict = Verdict::kComplete;
    return static_cast<int>(HPE_PAUSED);
  };
  Outcome o;
  llhttp_t parser;
  llhttp_init(&parser, HTTP_REQUEST, &settings);
  parser.data = &o;
  const std::string all = std::string(kHead) + std::string(bytes);
  const llhttp_errno_t error = llhttp_execute(&parser, all.data(), all.size());
  if (o.verdict == Verdict::kComplete) {
    o.end = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - all.data()) - kHead.size();
  } else if (error != HPE_OK) {
    o.verdict = Verdict::kRejected;
    o.reason = llhttp_errno_name(error);
  }
  return o;
}

std::size_t skip(std::string_view& text, auto wanted) {
  const std::size_t n = static_cast<std::size_t>(std::ranges::find_if_not(text, wanted) - text.begin());
  text.remove_prefix(n);
  return n;
}
bool blank(char c) { return c == ' ' || c == '\t'; }
bool token(char c) { return is(c, kTokenChar); }
bool text_char(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

bool take_quoted(std::string_view& text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (!text_char(text[i])) return false;
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return true;
    }
    if (text[i] == '\\' && (++i == text.size() || !text_char(text[i]))) return false;
  }
  return false;
}

// *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
bool are_extensions(std::string_view text) {
  while (!text.empty()) {
    skip(text, blank);
    if (!text.starts_with(';')) return false;
    text.remove_prefix(1);
    skip(text, blank);
    if (skip(text, token) == 0) return false;
    std::string_view behind = text;
    skip(behind, blank);
    if (!behind.starts_with('=')) continue;
    text = behind.substr(1);
    skip(text, blank);
    if (text.starts_with('"') ? !take_quoted(text) : skip(text, token) == 0) return false;
  }
  return true;
}

bool is_field(std::string_view line) {
  return skip(line, token) > 0 && line.starts_with(':') && std::ranges::all_of(line, text_char);
}

// Decodes a body that is complete and perfect. `most`: of the bytes that are not data, the most that were unpaid; a byte of
// data pays for eight.
std::optional<Outcome> decode(std::string_view text, std::size_t& most) {
  Outcome o{.verdict = Verdict::kComplete};
  const std::size_t all = text.size();
  std::size_t data_end = 0, unpaid = 0;
  most = 0;
  const auto line = [&text]() -> std::optional<std::string_view> {
    const std::size_t end = text.find("\r\n");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (taken.find_first_of("\r\n") != std::string_view::npos) return std::nullopt;
    return taken;
  };
  for (;;) {
    const std::optional<std::string_view> size_line = line();
    if (!size_line) return std::nullopt;
    std::size_t digits = 0, size = 0;
    for (; digits < size_line->size() && is((*size_line)[digits], kHexDigit); ++digits) {
      if (size > (~std::size_t{0} >> 4)) return std::nullopt;
      size = size * 16 + static_cast<std::size_t>(hex_value((*size_line)[digits]));
    }
    if (digits == 0 || !are_extensions(size_line->substr(digits))) return std::nullopt;
    if (size == 0) break;
    unpaid += all - text.size() - data_end;
    most = std::max(most, unpaid);
    if (text.size() < size || text.substr(size, 2) != "\r\n") return std::nullopt;
    unpaid -= std::min(unpaid, 8 * size);
    o.data += text.substr(0, size);
    data_end = all - text.size() + size;
    text.remove_prefix(size + 2);
  }
  for (;;) {
    const std::optional<std::string_view> trailer = line();
    if (!trailer || (!trailer->empty() && !is_field(*trailer))) return std::nullopt;
    if (trailer->empty()) break;
  }
  o.end = all - text.size();
  most = std::max(most, unpaid + o.end - data_end);
  return o;
}

void compare(std::string_view bytes, const Outcome& own, std::size_t overhead_max) {
  const Outcome plain = plain_llhttp(bytes);
  std::size_t most = 0;
  const std::optional<Outcome> exact = decode(bytes, most);
  const bool within = most <= overhead_max;
  if (exact && within) {
    expect(own.verdict == Verdict::kComplete, "a perfect body within the limit is accepted",
           describe(own) + "\nexact: " + describe(*exact));
  }
  if (own.verdict == Verdict::kComplete) {
    expect(exact && exact->data == own.data && exact->end == own.end,
           "what is accepted is exactly what RFC 9112 7.1 says",
           describe(own) + "\nexact: " + (exact ? describe(*exact) : "malformed"));
    expect(within, "the limit on overhead is obeyed", describe(own));
    expect(plain.verdict == Verdict::kRejected || (plain.data == own.data && plain.end == own.end),
           "llhttp finds the same data and the same end", describe(own) + "\nllhttp: " + describe(plain));
  }
  if (own.verdict == Verdict::kIncomplete) {
    expect(plain.verdict != Verdict::kComplete, "a body is incomplete only if llhttp does not see its end",
           describe(own) + "\nllhttp: " + describe(plain));
    expect(plain.verdict == Verdict::kRejected || own.data == plain.data,
           "the data of an incomplete body is the same", describe(own) + "\nllhttp: " + describe(plain));
  }
}

bool same(const Outcome& a, const Outcome& b) {
  if (a.verdict != b.verdict || a.end != b.end) return false;
  // The data before a rejected byte has been handed out or not, depending on the pieces.
  return a.verdict == Verdict::kRejected || a.data == b.data;
}

void check_body(fuzz::Input input) {
  const std::uint8_t limit = input.byte();
  const std::size_t split = input.number(2);
  const std::string_view bytes = input.rest();
  if (bytes.empty()) return;
  const std::size_t overhead_max = limit != 0 ? limit : 16 << 10;

  const Outcome whole = ours(bytes, {bytes.size()}, overhead_max);
  compare(bytes, whole, overhead_max);
  const Outcome halves = ours(bytes, {1 + split % bytes.size(), bytes.size()}, overhead_max);
  expect(same(whole, halves), "a split does not change the outcome",
         describe(whole) + "\nsplit: " + describe(halves));
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i <= bytes.size(); ++i) every.push_back(i);
  const Outcome single = ours(bytes, every, overhead_max);
  expect(same(whole, single), "single bytes do not change the outcome",
         describe(whole) + "\nbytes: " + describe(single));
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_body({data, size});
  return 0;
}
