#include <tuza/http/route/clean_path.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>

namespace tuza::http {
namespace {

// 1 for ".", 2 for "..", 0 for everything else; a dot may be written as "%2e".
int dots(std::string_view segment) {
  int count = 0;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    const bool escape = is_percent_escape(segment, i);
    if ((escape ? unescaped(segment, i) : segment[i]) != '.') return 0;
    if (escape) i += 2;
    ++count;
  }
  return count <= 2 ? count : 0;
}

}  // namespace

bool is_clean(std::string_view path) {
  for (std::size_t slash = 0; slash + 1 < path.size(); slash = path.find('/', slash + 1)) {
    if (slash == std::string_view::npos) return true;
    const char next = path[slash + 1];
    if (next == '/') return false;
    if (next != '.' && next != '%') continue;
    const std::string_view behind = path.substr(slash + 1);
    if (dots(behind.substr(0, behind.find('/'))) != 0) return false;
  }
  return true;
}

std::string clean_path(std::string_view path) {
  std::string clean;
  bool slash_at_end = false;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    const int up = dots(segment);
    slash_at_end = segment.empty() || up != 0;
    if (up == 2) clean.resize(clean.empty() ? 0 : clean.rfind('/'));
    if (slash_at_end) continue;
    clean.append("/").append(segment);
  }
  if (slash_at_end || clean.empty()) clean += '/';
  return clean;
}

}  // namespace tuza::http
