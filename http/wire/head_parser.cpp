#include <tuza/http/wire/head_parser.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tuza::http {
namespace {

// llhttp 8 does not accept tabs after the digits of a Content-Length, which RFC 9112 5 allows. Tabs mean the
// same as spaces, so they are replaced by spaces, and the head is parsed again.
bool replace_tabs(char* at, const char* end) {
  if (at >= end || *at != '\t') return false;
  while (at < end && (*at == '\t' || *at == ' ')) *at++ = ' ';
  return true;
}

// RFC 9110 2.5: a message of a higher minor version is taken as one of HTTP/1.1, which llhttp refuses.
bool lower_minor_version(char* base, std::size_t size, const char* error_at, bool request) {
  const std::string_view major = request ? " HTTP/1." : "HTTP/1.";
  for (const std::ptrdiff_t back : {0, 1}) {
    const std::ptrdiff_t at = error_at - base - back;
    if (at < static_cast<std::ptrdiff_t>(major.size()) || at >= static_cast<std::ptrdiff_t>(size)) continue;
    const std::string_view before(base, static_cast<std::size_t>(at));
    const bool minor = request ? before.ends_with(major) : before == major;
    if (!minor || base[at] < '2' || base[at] > '9') continue;
    base[at] = '1';
    return true;
  }
  return false;
}

bool is_wide(char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }

// "HTTP/3.0" is a version, "HTTP/1" is not; `line`: the request line as far as it has arrived.
bool ends_in_version(std::string_view line) {
  constexpr std::string_view kForm = "HTTP/0.0";
  line = line.substr(0, line.find('\r'));
  for (int word = 0; word < 2; ++word) {  // method and target
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return false;
    line.remove_prefix(space + 1);
  }
  if (line.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != kForm[i]) return false;
  }
  return true;
}

// "HTTP/3.0 200" does, also before all of it has arrived.
bool begins_with_version(std::string_view line) {
  constexpr std::string_view kForm = "HTTP/0.0 ";
  for (std::size_t i = 0; i < std::min(kForm.size(), line.size()); ++i) {
    if (kForm[i] == '0' ? line[i] < '0' || line[i] > '9' : line[i] != kForm[i]) return false;
  }
  return true;
}

constexpr ParseError malformed(std::string_view text, std::size_t offset) {
  return {ParseErrc::kMalformed, text, offset};
}

}  // namespace

void HeadParser::add(HeadSlice& slice, const char* at, std::size_t size) const {
  if (slice.size == 0) slice.begin = static_cast<std::uint32_t>(at - base_);
  slice.size += static_cast<std::uint32_t>(size);
}

// False: llhttp is to stop. No exception may pass through it.
bool HeadParser::add_field() {
  std::vector<Head::Field>& fields = head_->fields;
  too_many_headers_ = fields.size() == limits_->fields;
  if (too_many_headers_) return false;
  try {
    fields.emplace_back();
  } catch (const std::bad_alloc&) {
    no_memory_ = true;
    return false;
  }
  return true;
}

const llhttp_settings_t& HeadParser::settings() {
  static constexpr llhttp_settings_t kShared = [] {
    llhttp_settings_t s{};
    s.on_url = [](llhttp_t* p, const char* at, std::size_t size) {
      self(p).add(*self(p).line_, at, size);
      return 0;
    };
    s.on_status = s.on_url;
    s.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) {
      HeadParser& me = self(p);
      Head& head = *me.head_;
      // A name after a value begins a new field; a name after a name continues the same field.
      if (me.in_value_ || head.fields.empty()) {
        if (!me.add_field()) return -1;
        me.in_value_ = false;
      }
      me.add(head.fields.back().name, at, size);
      return 0;
    };
    // Not set at the first byte of the value: the value may be empty.
    s.on_header_field_complete = [](llhttp_t* p) {
      self(p).in_value_ = true;
      return 0;
    };
    s.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) {
      HeadParser& me = self(p);
      me.add(me.head_->fields.back().value, at, size);
      return 0;
    };
    s.on_headers_complete = [](llhttp_t* p) {
      self(p).head_complete_ = true;
      return static_cast<int>(HPE_PAUSED);
    };
    return s;
  }();
  return kShared;
}

void HeadParser::begin(llhttp_type_t direction, Head& head, HeadSlice& line, const HeadLimits& limits) {
  llhttp_init(&parser_, direction, &settings());
  parser_.data = this;
  head_ = &head;
  line_ = &line;
  limits_ = &limits;
  line = HeadSlice{};
  head.fields.clear();
  fed_ = 0;
  wide_ = line_ended_ = misplaced_ = false;
  in_value_ = unknown_method_ = too_many_headers_ = no_memory_ = head_complete_ = false;
}

// The same head, from its first byte.
void HeadParser::begin_again() {
  const bool wide = wide_;
  begin(static_cast<llhttp_type_t>(parser_.type), *head_, *line_, *limits_);
  wide_ = wide;
}

llhttp_errno_t HeadParser::execute(const char* base, std::size_t from, std::size_t to) {
  if (!wide_ || line_ended_) return llhttp_execute(&parser_, base + from, to - from);
  return execute_wide(base, from, to);
}

// llhttp refuses targets with bytes above 0x7f, if it is built strictly. It gets letters instead; Head refers to the bytes as
// they are, and framing judges those.
llhttp_errno_t HeadParser::execute_wide(const char* base, std::size_t from, std::size_t to) {
  constexpr std::string_view kLetters = "xxxxxxxxxxxxxxxx";
  while (from < to && !line_ended_) {
    std::size_t end = from;
    if (is_wide(base[from])) {
      while (end < to && end - from < kLetters.size() && is_wide(base[end])) ++end;
      // What llhttp has seen of the target it has announced at the end of the call before.
      if (line_->size > 0 && llhttp_execute(&parser_, kLetters.data(), end - from) == HPE_OK) {
        from = end;
        continue;
      }
      misplaced_ = true;
      fed_ = from;
      return HPE_INVALID_URL;
    }
    while (end < to && !is_wide(base[end]) && !line_ended_)
      line_ended_ = base[end++] == '\n' && line_->size > 0;
    const llhttp_errno_t error = llhttp_execute(&parser_, base + from, end - from);
    if (error != HPE_OK) return error;
    from = end;
  }
  return from == to ? HPE_OK : llhttp_execute(&parser_, base + from, to - from);
}

llhttp_errno_t HeadParser::execute_head(char* base, std::size_t size) {
  const std::size_t all = fed_ + size;
  llhttp_errno_t error = execute(base, fed_, all);
  const auto mended = [&] {
    if (misplaced_) return false;
    if (error != HPE_INVALID_CONTENT_LENGTH && error != HPE_INVALID_VERSION && error != HPE_INVALID_URL)
      return false;
    char* const at = base + (llhttp_get_error_pos(&parser_) - base);
    if (error == HPE_INVALID_URL) return !wide_ && at < base + all && is_wide(*at) && (wide_ = true);
    return (error == HPE_INVALID_CONTENT_LENGTH && replace_tabs(at, base + all)) ||
           (error == HPE_INVALID_VERSION && lower_minor_version(base, all, at, is_request()));
  };
  while (mended()) {
    begin_again();
    base_ = base;
    error = execute(base, 0, all);
  }
  return error;
}

std::expected<bool, ParseError> HeadParser::feed_head(char* base, std::size_t input_size) {
  base_ = base;
  // Never feeds more than the limit allows: bytes beyond the limit are not examined.
  const std::size_t size = std::min(input_size, limits_->head_bytes - fed_);
  const std::size_t all = fed_ + size;
  if (unknown_method_) {
    fed_ = all;
    return judge_method({base, all});
  }
  const llhttp_errno_t error = execute_head(base, size);
  if (head_complete_ && error == HPE_PAUSED) {
    head_->bytes = static_cast<std::uint32_t>(llhttp_get_error_pos(&parser_) - base);
    if (line_->size > limits_->start_line_bytes) return std::unexpected(line_too_long(0));
    return true;
  }
  if (error != HPE_OK) return head_failed(base, all);
  fed_ = all;
  if (line_->size > limits_->start_line_bytes) {
    return std::unexpected(line_too_long(fed_));
  }
  if (fed_ == limits_->head_bytes) {
    if (head_->fields.empty()) return std::unexpected(line_too_long(fed_));
    return std::unexpected(ParseError{ParseErrc::kHeadTooLarge, "header fields too large", fed_});
  }
  return false;
}

std::expected<bool, ParseError> HeadParser::head_failed(const char* base, std::size_t size) {
  const char* position = llhttp_get_error_pos(&parser_);
  const auto offset = static_cast<std::size_t>(position == nullptr ? 0 : position - base);
  if (misplaced_) return std::unexpected(malformed("malformed request target", fed_));
  if (no_memory_) throw std::bad_alloc();
  if (too_many_headers_)
    return std::unexpected(ParseError{ParseErrc::kHeadTooLarge, "too many header fields", offset});
  if (llhttp_get_errno(&parser_) == HPE_INVALID_METHOD) {
    unknown_method_ = true;
    fed_ = size;
    return judge_method({base, size});
  }
  if (llhttp_get_errno(&parser_) == HPE_INVALID_VERSION && is_request()) {
    std::string_view text(base, size);
    text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
    if (!ends_in_version(text)) return std::unexpected(malformed("malformed HTTP version", offset));
  }
  if (llhttp_get_errno(&parser_) == HPE_INVALID_VERSION && !is_request() &&
      !begins_with_version({base, size}))
    return std::unexpected(malformed("malformed status line", offset));
  return std::unexpected(explain(offset));
}

// llhttp stops at the first letter that no known method has at that place. A well-formed unknown method is
// not an error of the client, and gets a different status than garbage, so the method must be read to its
// end.
std::expected<bool, ParseError> HeadParser::judge_method(std::string_view head) {
  constexpr std::size_t kMethodBytesMax = 32;
  const std::size_t begin = std::min(head.find_first_not_of("\r\n"), head.size());
  const std::string_view method = head.substr(begin, head.find(' ', begin) - begin);
  const bool token = std::all_of(method.begin(), method.end(), [](char c) { return is(c, kTokenChar); });
  if (!token || method.empty() || method.size() > kMethodBytesMax)
    return std::unexpected(malformed("malformed method", begin));
  if (begin + method.size() == head.size()) {
    // Behind many empty lines the limit may end it.
    if (head.size() == limits_->head_bytes) return std::unexpected(line_too_long(head.size()));
    return false;
  }
  return std::unexpected(ParseError{ParseErrc::kUnknownMethod, "method not implemented", begin});
}

ParseError HeadParser::line_too_long(std::size_t offset) const {
  return {ParseErrc::kStartLineTooLong, is_request() ? "request line too long" : "status line too long",
          offset};
}

// Translates an llhttp error.
ParseError HeadParser::explain(std::size_t offset) const {
  switch (llhttp_get_errno(&parser_)) {
    case HPE_INVALID_URL: return malformed("malformed request target", offset);
    case HPE_PAUSED_H2_UPGRADE:  // the preface of HTTP/2 (RFC 9113 3.4)
    case HPE_INVALID_VERSION: return {ParseErrc::kUnknownVersion, "HTTP version not supported", offset};
    case HPE_INVALID_CONSTANT:
      return malformed(is_request() ? "malformed request line" : "malformed status line", offset);
    case HPE_INVALID_STATUS: return malformed("malformed status", offset);
    case HPE_INVALID_HEADER_TOKEN: return malformed("malformed header field", offset);
    case HPE_UNEXPECTED_CONTENT_LENGTH: return malformed("more than one length of the body", offset);
    case HPE_INVALID_CONTENT_LENGTH: return malformed("malformed Content-Length", offset);
    case HPE_INVALID_TRANSFER_ENCODING: return malformed("malformed Transfer-Encoding", offset);
    default: return malformed(is_request() ? "malformed request" : "malformed response", offset);
  }
}

}  // namespace tuza::http
