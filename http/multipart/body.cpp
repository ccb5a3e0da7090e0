#include <tuza/http/multipart/body.h>

#include <tuza/http/multipart/disposition.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <cstring>

namespace tuza::http {
namespace {

constexpr std::size_t kBufferBytes = 16 << 10;

[[noreturn]] void malformed(const char* text) { throw StatusError(400, text); }

}  // namespace

// The text begins as if a line had ended before: the first delimiter needs no CRLF.
MultipartBody::MultipartBody(MultipartSource& source, std::string_view boundary, std::size_t head_bytes_max)
    : source_(source),
      delimiter_("\r\n--" + std::string(boundary)),
      head_bytes_max_(head_bytes_max),
      capacity_(kBufferBytes + head_bytes_max),
      buffer_(std::make_unique_for_overwrite<char[]>(capacity_)),
      end_(2) {
  std::memcpy(buffer_.get(), "\r\n", 2);
}

bool MultipartBody::fill_if_any() {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t n = source_.read({buffer_.get() + end_, capacity_ - end_});
  end_ += n;
  return n > 0;
}

void MultipartBody::fill() {
  if (!fill_if_any()) malformed("the multipart body ends without its last boundary");
}

void MultipartBody::need(std::size_t bytes) {
  while (unread().size() < bytes) fill();
}

// Where a delimiter begins that is complete, or that may continue behind `text`; otherwise the size of `text`.
std::size_t MultipartBody::begin_of_delimiter(std::string_view text) const {
  if (const void* const found = ::memmem(text.data(), text.size(), delimiter_.data(), delimiter_.size())) {
    return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
  }
  std::size_t at = text.size() - std::min(text.size(), delimiter_.size() - 1);
  while ((at = text.find('\r', at)) != std::string_view::npos) {
    if (delimiter_.starts_with(text.substr(at))) return at;
    ++at;
  }
  return text.size();
}

std::string_view MultipartBody::data() {
  while (!at_delimiter_) {
    const std::string_view text = unread();
    const std::size_t safe = begin_of_delimiter(text);
    if (safe > 0) {
      begin_ += safe;
      return text.substr(0, safe);
    }
    at_delimiter_ = text.size() >= delimiter_.size();
    if (!at_delimiter_) fill();
  }
  return {};
}

bool MultipartBody::next_part() {
  while (!ended_ && !data().empty()) {
  }
  if (ended_) return false;
  begin_ += delimiter_.size();
  need(2);
  if (unread().starts_with("--")) {
    end_form();
    return false;
  }
  take_head();
  at_delimiter_ = false;
  return true;
}

// Behind the last boundary there may be spaces, and then lines that say nothing (RFC 2046 5.1.1).
void MultipartBody::end_form() {
  begin_ += 2;
  ended_ = true;
  while (!unread().empty() || fill_if_any()) {
    const char c = unread().front();
    if (c == '\r') return;
    if (c != ' ' && c != '\t') malformed("a multipart boundary is followed by other text");
    ++begin_;
  }
}

// The head begins with the end of the boundary's line: an empty one is CRLFCRLF.
void MultipartBody::take_head() {
  std::size_t line = 0;  // spaces that RFC 2046 permits behind the boundary
  for (;; ++line) {
    need(line + 1);
    const char c = unread()[line];
    if (c != ' ' && c != '\t') break;
    if (line == head_bytes_max_) throw StatusError(413, "the header of a part is too large");
  }
  begin_ += line;
  for (std::size_t searched = 0;;) {
    const std::string_view text = unread();
    if (text.size() >= 2 && !text.starts_with("\r\n"))
      malformed("a multipart boundary is followed by other text");
    const std::size_t end = text.find("\r\n\r\n", searched);
    // Not found, the text may end with three bytes of the end.
    const std::size_t bytes =
        end != std::string_view::npos ? end : text.size() - std::min<std::size_t>(text.size(), 3);
    if (bytes > head_bytes_max_ + 2) throw StatusError(413, "the header of a part is too large");
    if (end != std::string_view::npos) {
      head_ = end == 0 ? std::string_view() : text.substr(2, end - 2);
      begin_ += end + 2;  // the CRLF before the data may belong to a delimiter: the data is then empty
      break;
    }
    searched = bytes;
    fill();
  }
  // Data begins behind this CRLF, unless the delimiter itself does.
  need(delimiter_.size());
  if (!unread().starts_with(delimiter_)) begin_ += 2;
}

std::optional<std::string> multipart_boundary(std::string_view content_type) {
  if (!equals_ignoring_case(trim(content_type.substr(0, content_type.find(';'))), "multipart/form-data")) {
    return std::nullopt;
  }
  std::optional<ParameterList> parameters = parse_parameters(content_type);
  if (!parameters) return std::nullopt;
  const std::optional<std::string> boundary = parameters->get("boundary");
  if (!boundary || boundary->empty() || boundary->size() > 70 || boundary->back() == ' ') return std::nullopt;
  const bool good = std::ranges::all_of(*boundary, [](char c) { return c >= ' ' && c < 0x7f; });
  return good ? boundary : std::nullopt;
}

}  // namespace tuza::http
