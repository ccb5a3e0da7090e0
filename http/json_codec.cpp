#include <tuza/http/json_codec.h>

namespace tuza::http {

JsonError::JsonError(std::size_t byte)
    : std::runtime_error("malformed JSON at byte " + std::to_string(byte)) {}

std::optional<std::size_t> json_too_deep(std::string_view json, std::size_t depth_max) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > depth_max) return i + 1;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

}  // namespace tuza::http
