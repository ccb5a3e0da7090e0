// What the fuzz targets of heads share: a parser fed in pieces, llhttp as it comes, and a reader that only splits lines.
#pragma once

#include <llhttp.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::fuzz_heads {

using Fields = std::vector<std::pair<std::string, std::string>>;  // values without surrounding white space

enum class Verdict : std::uint8_t { kIncomplete, kAccepted, kRejected };

inline void append(std::string& text, const Fields& fields) {
  for (const auto& [name, value] : fields) text.append(" | ").append(name).append("=").append(value);
}

inline Fields fields_of(const Head& head, const char* base) {
  Fields fields;
  for (const Head::Field& field : head.fields) {
    fields.emplace_back(field.name.in(base), trim(field.value.in(base)));
  }
  return fields;
}

// The bytes arrive in pieces that end at `ends`; each time they move to an allocation of exactly their size, so that
// AddressSanitizer sees every byte read too many. Returns `complete(base)` for a complete head, `refused(error)` for a
// malformed one, or `Outcome{}` for too few bytes. `seen` receives the bytes after parsing, which may replace tabs.
template <class Outcome, class Complete, class Refused>
Outcome feed_in_pieces(HeadParser& parser, std::string_view bytes, const std::vector<std::size_t>& ends,
                       Complete complete, Refused refused, std::string* seen = nullptr) {
  std::unique_ptr<char[]> buffer;
  std::size_t have = 0;
  for (const std::size_t end : ends) {
    auto larger = std::make_unique<char[]>(end);
    if (have > 0) std::memcpy(larger.get(), buffer.get(), have);
    std::memcpy(larger.get() + have, bytes.data() + have, end - have);
    buffer = std::move(larger);
    const auto fed = parser.feed_head(buffer.get(), end - std::exchange(have, end));
    if (seen != nullptr) seen->assign(buffer.get(), have);
    if (!fed) return refused(fed.error());
    if (*fed) return complete(buffer.get());
  }
  return {};
}

// The ends of pieces: cut in two at a place that `split` chooses, and byte by byte (long heads: by sevens).
inline std::vector<std::size_t> two_pieces(std::string_view bytes, std::size_t split) {
  std::vector<std::size_t> ends{1 + split % bytes.size()};
  if (ends.front() < bytes.size()) ends.push_back(bytes.size());
  return ends;
}
inline std::vector<std::size_t> single_bytes(std::string_view bytes) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < bytes.size(); i += bytes.size() > 512 ? 7 : 1) ends.push_back(i);
  ends.push_back(bytes.size());
  return ends;
}

// llhttp as it comes.
struct PlainHead {
  PlainHead(llhttp_type_t type, std::string_view bytes) {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_url = [](llhttp_t* p, const char* at, std::size_t n) {
      self(p).target.append(at, n);
      return 0;
    };
    settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t n) {
      self(p).fields.emplace_back(std::string(at, n), "");
      return 0;
    };
    settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t n) {
      self(p).fields.back().second.append(at, n);
      return 0;
    };
    settings.on_headers_complete = [](llhttp_t* p) {
      self(p).verdict = Verdict::kAccepted;
      return static_cast<int>(HPE_PAUSED);
    };
    llhttp_init(&parser, type, &settings);
    parser.data = this;
    const llhttp_errno_t error = llhttp_execute(&parser, bytes.data(), bytes.size());
    if (verdict == Verdict::kIncomplete && error != HPE_OK) verdict = Verdict::kRejected;
    if (verdict == Verdict::kAccepted)
      size = static_cast<std::size_t>(llhttp_get_error_pos(&parser) - bytes.data());
    for (auto& [name, value] : fields) value = std::string(trim(value));
  }
  PlainHead(const PlainHead&) = delete;
  PlainHead& operator=(const PlainHead&) = delete;

  llhttp_t parser;
  Verdict verdict = Verdict::kIncomplete;
  std::string target;
  Fields fields;
  std::size_t size = 0;

 private:
  static PlainHead& self(llhttp_t* p) { return *static_cast<PlainHead*>(p->data); }
};

// Takes an accepted head apart in the simplest way.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text), all_(text.size()) {}

  std::string_view next() {
    const std::size_t end = text_.find("\r\n");
    fuzz::expect(end != std::string_view::npos, "an accepted head consists of lines that end in CRLF", text_);
    const std::string_view taken = text_.substr(0, end);
    text_.remove_prefix(end + 2);
    return taken;
  }
  void skip_empty() {
    while (text_.starts_with("\r\n")) text_.remove_prefix(2);
  }
  // Up to the empty line.
  Fields fields() {
    Fields all;
    for (std::string_view field = next(); !field.empty(); field = next()) {
      const std::size_t colon = field.find(':');
      fuzz::expect(colon != std::string_view::npos, "a field line has a colon", field);
      all.emplace_back(field.substr(0, colon), trim(field.substr(colon + 1)));
    }
    return all;
  }
  [[nodiscard]] std::size_t taken() const { return all_ - text_.size(); }

 private:
  std::string_view text_;
  std::size_t all_;
};

}  // namespace tuza::http::fuzz_heads
