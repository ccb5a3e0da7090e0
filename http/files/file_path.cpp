#include <tuza/http/files/file_path.h>

#include <tuza/http/wire/chars.h>

namespace tuza::http {
namespace {

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
    const std::size_t begin = path.size();
    append_unescaped(path, encoded.substr(0, slash));
    if (!allowed(std::string_view(path).substr(begin), dots)) return std::nullopt;
    if (slash == std::string_view::npos) break;
    path += '/';
    encoded.remove_prefix(slash + 1);
  }
  return path;
}

std::optional<std::string_view> behind_prefix(std::string_view path, std::string_view prefix) {
  if (path.starts_with(prefix)) return path.substr(prefix.size());
  while (!prefix.empty()) {
    const std::size_t ours = prefix.find('/'), theirs = path.find('/');
    if (theirs == std::string_view::npos) return std::nullopt;
    std::string wanted, got;
    append_unescaped(wanted, prefix.substr(0, ours));
    append_unescaped(got, path.substr(0, theirs));
    if (wanted != got) return std::nullopt;
    prefix.remove_prefix(ours + 1);
    path.remove_prefix(theirs + 1);
  }
  return path;
}

}  // namespace tuza::http
