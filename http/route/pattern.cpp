#include <tuza/http/route/pattern.h>

#include <tuza/http/serve/exchange_buffers.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

namespace tuza::http {
namespace {

[[noreturn]] void fail(std::string_view pattern, const std::string& why) {
  throw std::invalid_argument("pattern \"" + std::string(pattern) + "\": " + why);
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || digit(c); });
}

Pattern::Segment parse_segment(std::string_view pattern, std::string_view text) {
  const bool wildcard = text.starts_with('{') && text.ends_with('}');
  if (!wildcard) {
    if (text.find_first_of("{}") != std::string_view::npos) {
      fail(pattern, "a wildcard must be a whole segment, \"{name}\"");
    }
    return {Pattern::Kind::kText, std::string(text)};
  }
  std::string_view name = text.substr(1, text.size() - 2);
  const bool rest = name.ends_with("...");
  if (rest) name.remove_suffix(3);
  if (!is_name(name)) fail(pattern, "\"" + std::string(name) + "\" is no name");
  return {rest ? Pattern::Kind::kRest : Pattern::Kind::kName, std::string(name)};
}

}  // namespace

Pattern Pattern::parse(std::string_view text) {
  Pattern pattern;
  std::string_view path = text;
  if (const std::size_t space = text.find_first_of(" \t"); space != std::string_view::npos) {
    pattern.method = parse_method(text.substr(0, space));
    if (!pattern.method) fail(text, "unknown method");
    path = text.substr(std::min(text.find_first_not_of(" \t", space), text.size()));
  }
  if (!path.starts_with('/')) fail(text, "the path must begin with \"/\"");
  path.remove_prefix(1);
  std::set<std::string> names;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    const bool last = slash == path.size();
    if (part.empty()) fail(text, "empty segment");
    Segment segment = parse_segment(text, part);
    if (segment.kind == Kind::kRest && !last) fail(text, "\"{...}\" must be the last segment");
    if (segment.kind != Kind::kText && !names.insert(segment.text).second) fail(text, "duplicate name");
    pattern.segments.push_back(std::move(segment));
    if (last) break;
    path.remove_prefix(slash + 1);
    if (path.empty()) pattern.segments.push_back({Kind::kRest, ""});  // a trailing slash
  }
  if (names.size() > ExchangeBuffers::kPathValuesMax) fail(text, "too many names");
  return pattern;
}

}  // namespace tuza::http
