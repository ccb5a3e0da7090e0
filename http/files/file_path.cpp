#include <tuza/http/files/file_path.h>

#include <tuza/http/wire/chars.h>

namespace tuza::http {
namespace {

std::optional<std::string> decode(std::string_view segment) {
  std::string name;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (segment[i] != '%') {
      name += segment[i];
      continue;
    }
    if (!is_percent_escape(segment, i)) return std::nullopt;
    name += unescaped(segment, i);
    i += 2;
  }
  return name;
}

bool allowed(std::string_view name, bool dots) {
  if (name.empty() || name == "." || name == "..") return false;
  if (name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos) return false;
  return dots || name.front() != '.' || name == ".well-known";
}

}  // namespace

std::optional<std::string> file_path(std::string_view encoded, bool dots) {
  std::string path;
  while (!encoded.empty()) {
    const std::size_t slash = encoded.find('/');
    const std::optional<std::string> name = decode(encoded.substr(0, slash));
    if (!name || !allowed(*name, dots)) return std::nullopt;
    path += *name;
    if (slash == std::string_view::npos) break;
    path += '/';
    encoded.remove_prefix(slash + 1);
  }
  return path;
}

}  // namespace tuza::http
