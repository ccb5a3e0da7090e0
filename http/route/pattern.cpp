#include <tuza/http/route/pattern.h>

#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/http/wire/chars.h>

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

// Unreserved characters. Host fields may have others, which nobody uses, and which mean something to people who write patterns.
bool is_host_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("-._~").contains(c);
  });
}

Pattern::Segment parse_segment(std::string_view pattern, std::string_view text) {
  const bool wildcard = text.starts_with('{') && text.ends_with('}');
  if (!wildcard) {
    if (text.find_first_of("{}") != std::string_view::npos) {
      fail(pattern, "a wildcard must be a whole segment, \"{name}\"");
    }
    std::string decoded;
    append_unescaped(decoded, text);
    if (decoded == "." || decoded == "..")
      fail(pattern, "never matches: \".\" and \"..\" are resolved before");
    return {Pattern::Kind::kText, decoded};
  }
  std::string_view name = text.substr(1, text.size() - 2);
  if (name == "$") return {Pattern::Kind::kEnd, ""};
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
  const std::size_t host = std::min(path.find('/'), path.size());
  if (host == path.size()) fail(text, "the path must begin with \"/\"");
  if (!is_host_name(path.substr(0, host))) {
    fail(text, "a host is a name of letters, digits, and \"-._~\", without wildcards and port");
  }
  pattern.host = lower_case(path.substr(0, host));
  path.remove_prefix(host);
  std::set<std::string> names;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(part.size());
    if (part.empty() && !path.empty()) fail(text, "empty segment");
    Segment segment = part.empty() ? Segment{Kind::kRest, ""} : parse_segment(text, part);
    const bool last_only = segment.kind == Kind::kRest || segment.kind == Kind::kEnd;
    if (last_only && !path.empty()) fail(text, "\"" + std::string(part) + "\" must be the last segment");
    const bool named = segment.kind != Kind::kText && !segment.text.empty();
    if (named && !names.insert(segment.text).second) fail(text, "duplicate name");
    pattern.segments.push_back(std::move(segment));
  }
  constexpr std::size_t kBytesMax = 0xffff;  // Route::Name
  if (text.size() > kBytesMax) fail(text.substr(0, 100), "too long");
  if (names.size() > ExchangeBuffers::kPathValuesMax) fail(text, "too many names");
  return pattern;
}

}  // namespace tuza::http
