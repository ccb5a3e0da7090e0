#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <algorithm>
#include <cstddef>

namespace tuza::http {

std::string_view take_item(std::string_view& list, char separator) {
  bool quoted = false;
  std::size_t i = 0;
  for (; i < list.size(); ++i) {
    if (quoted && list[i] == '\\') {
      ++i;
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && list[i] == separator) {
      break;
    }
  }
  i = std::min(i, list.size());
  const std::string_view item = list.substr(0, i);
  list.remove_prefix(std::min(i + 1, list.size()));
  return trim(item);
}

std::string_view take_last_item(std::string_view& list, char separator) {
  bool quoted = false;
  std::size_t i = list.size();
  for (; i > 0; --i) {
    const char c = list[i - 1];
    if (c == '"') {
      const std::size_t before = list.substr(0, i - 1).find_last_not_of('\\');
      const std::size_t backslashes = i - 1 - (before == std::string_view::npos ? 0 : before + 1);
      if (!quoted || backslashes % 2 == 0) quoted = !quoted;
    } else if (!quoted && c == separator) {
      break;
    }
  }
  const std::string_view item = list.substr(i);
  list = list.substr(0, i == 0 ? 0 : i - 1);
  return trim(item);
}

std::string_view unquoted(std::string_view text) {
  const bool quotes = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quotes ? text.substr(1, text.size() - 2) : text;
}

}  // namespace tuza::http
