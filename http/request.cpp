#include <tuza/http/request.h>

#include <tuza/http/serve/request_loop.h>
#include <tuza/http/wire/chars.h>

#include <utility>

namespace tuza::http {
namespace {

// Decodes the character of `text` at `i`, and moves `i` to the last byte of that character.
char decode_at(std::string_view text, std::size_t& i, bool plus_is_space) {
  if (is_percent_escape(text, i)) {
    i += 2;
    return unescaped(text, i - 2);
  }
  return plus_is_space && text[i] == '+' ? ' ' : text[i];
}

bool decodes_to(std::string_view text, std::string_view wanted) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i, ++size) {
    if (size == wanted.size() || decode_at(text, i, true) != wanted[size]) return false;
  }
  return size == wanted.size();
}

// `text` with its percent escapes decoded, and, in forms, "+" replaced by a space. The result is in the arena
// of `buffers`, unless there was nothing to replace. A "%" that begins no escape stays as it is.
std::string_view decode(ExchangeBuffers& buffers, std::string_view text, bool plus_is_space) {
  const bool plain = text.find('%') == std::string_view::npos &&
                     (!plus_is_space || text.find('+') == std::string_view::npos);
  if (plain) return text;
  auto* out = static_cast<char*>(buffers.arena().allocate(text.size(), 1));
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) out[size++] = decode_at(text, i, plus_is_space);
  return {out, size};
}

}  // namespace

Method Request::method() const { return loop_.buffers().head.method; }
int Request::version_minor() const { return loop_.buffers().head.version_minor; }

std::string_view Request::target() const {
  const ExchangeBuffers& buffers = loop_.buffers();
  return buffers.head.target.in(buffers.head_base);
}
std::string_view Request::path() const {
  const ExchangeBuffers& buffers = loop_.buffers();
  return buffers.head.path.in(buffers.head_base);
}
std::string_view Request::query() const {
  const ExchangeBuffers& buffers = loop_.buffers();
  return buffers.head.query.in(buffers.head_base);
}
std::string_view Request::host() const {
  const ExchangeBuffers& buffers = loop_.buffers();
  return buffers.head.host.in(buffers.head_base);
}

std::string_view Request::path_value(std::string_view name) const {
  ExchangeBuffers& buffers = loop_.buffers();
  for (std::size_t i = 0; i < buffers.path_value_count; ++i) {
    ExchangeBuffers::PathValue& found = buffers.path_values[i];
    if (found.name != name) continue;
    if (!std::exchange(found.decoded, true)) found.value = decode(buffers, found.value, false);
    return found.value;
  }
  return {};
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
  ExchangeBuffers& buffers = loop_.buffers();
  std::string_view rest = query();
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size() + (pair.size() < rest.size() ? 1 : 0));
    const std::string_view key = pair.substr(0, pair.find('='));
    if (!decodes_to(key, name)) continue;
    return decode(buffers, pair.substr(key.size() < pair.size() ? key.size() + 1 : key.size()), true);
  }
  return std::nullopt;
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (std::size_t i = 0; i < header_count(); ++i) {
    const Header field = header_at(i);
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t Request::header_count() const { return loop_.buffers().head.field_count; }

Request::Header Request::header_at(std::size_t index) const {
  const ExchangeBuffers& buffers = loop_.buffers();
  const Head::Field& field = buffers.head.fields[index];
  return {field.name.in(buffers.head_base), trim(field.value.in(buffers.head_base))};
}

std::optional<std::uint64_t> Request::content_length() const {
  const Head& head = loop_.buffers().head;
  if (head.chunked) return std::nullopt;
  return head.content_length;
}

Result<std::size_t> Request::read_body(std::span<std::byte> into) { return loop_.read_body(into); }
Result<std::string_view> Request::body() { return loop_.pull_body(); }
Result<net::Endpoint> Request::remote_endpoint() const { return loop_.conn().remote_endpoint(); }
std::string_view Request::remote() const { return loop_.remote(); }

}  // namespace tuza::http
