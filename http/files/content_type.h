// Maps a file name's extension to its media type. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tuza::http {

// "text/html; charset=utf-8" for index.html; application/octet-stream for unknown extensions.
std::string_view content_type_of(std::string_view path);

// The same, with types of one's own in front.
class ContentTypes {
 public:
  // `own`: extensions, without a dot, and their types; they precede those of `file`, which has the form of Apache's or nginx's
  // mime.types; empty: none. Throws std::system_error if the file cannot be read, and std::invalid_argument for a type or an
  // extension that cannot be one.
  ContentTypes(const std::vector<std::pair<std::string, std::string>>& own, const std::string& file);
  [[nodiscard]] std::string_view of(std::string_view path) const;

 private:
  void read(const std::string& file);
  std::unordered_map<std::string, std::string> types_;  // by extension, in lower case
};

}  // namespace tuza::http
