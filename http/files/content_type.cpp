#include <tuza/http/files/content_type.h>

#include <tuza/http/wire/chars.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace tuza::http {
namespace {

struct Entry {
  std::string_view extension, type;
};

constexpr Entry kTypes[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"xhtml", "application/xhtml+xml"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"jsonld", "application/ld+json"},
    {"geojson", "application/geo+json"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"toml", "application/toml"},
    {"webmanifest", "application/manifest+json"},
    {"txt", "text/plain; charset=utf-8"},
    {"log", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"ics", "text/calendar; charset=utf-8"},
    {"vcf", "text/vcard; charset=utf-8"},
    {"vtt", "text/vtt; charset=utf-8"},
    {"xml", "application/xml"},
    {"atom", "application/atom+xml"},
    {"rss", "application/rss+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"apng", "image/apng"},
    {"jxl", "image/jxl"},
    {"heic", "image/heic"},
    {"svg", "image/svg+xml"},
    {"ico", "image/vnd.microsoft.icon"},
    {"bmp", "image/bmp"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"otf", "font/otf"},
    {"eot", "application/vnd.ms-fontobject"},
    {"mp3", "audio/mpeg"},
    {"m4a", "audio/mp4"},
    {"aac", "audio/aac"},
    {"ogg", "audio/ogg"},
    {"oga", "audio/ogg"},
    {"weba", "audio/webm"},
    {"opus", "audio/ogg"},
    {"flac", "audio/flac"},
    {"wav", "audio/wav"},
    {"mp4", "video/mp4"},
    {"m4v", "video/mp4"},
    {"webm", "video/webm"},
    {"ogv", "video/ogg"},
    {"mov", "video/quicktime"},
    {"mpeg", "video/mpeg"},
    {"mpg", "video/mpeg"},
    {"mkv", "video/matroska"},
    {"ts", "video/mp2t"},  // a part of a stream, as m3u8 lists them
    {"m4s", "video/iso.segment"},
    {"m3u8", "application/vnd.apple.mpegurl"},
    {"mpd", "application/dash+xml"},
    {"pdf", "application/pdf"},
    {"epub", "application/epub+zip"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
    {"zst", "application/zstd"},
    {"bz2", "application/x-bzip2"},
    {"xz", "application/x-xz"},
    {"7z", "application/x-7z-compressed"},
    {"tar", "application/x-tar"},
    {"wasm", "application/wasm"},
};

// Without the dot; empty for ".profile" and "README".
std::string_view extension_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot + 1);
}

// "text/x; charset=utf-8": two tokens, and what may stand behind them in a field.
bool is_type(std::string_view text) {
  const std::string_view type = trim(text.substr(0, text.find(';')));
  const std::size_t slash = type.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == type.size() || has_control_char(text))
    return false;
  for (std::size_t i = 0; i < type.size(); ++i) {
    if (i != slash && !is(type[i], kTokenChar)) return false;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& what, const std::string& of, const std::string& type) {
  throw std::invalid_argument("FileServer: " + what + ": \"" + of + "\", \"" + type + "\"");
}

}  // namespace

std::string_view content_type_of(std::string_view path) {
  const std::string_view extension = extension_of(path);
  if (!extension.empty()) {
    for (const Entry& entry : kTypes) {
      if (equals_ignoring_case(entry.extension, extension)) return entry.type;
    }
  }
  return "application/octet-stream";
}

ContentTypes::ContentTypes(const std::vector<std::pair<std::string, std::string>>& own,
                           const std::string& file) {
  for (const auto& [extension, type] : own) {
    if (extension.empty() || extension.find_first_of("./") != std::string::npos || !is_type(type)) {
      refuse("no type of an extension", extension, type);
    }
    types_.emplace(lower_case(extension), type);
  }
  if (!file.empty()) read(file);
}

// Of each line, the type and its extensions; a comment begins with "#". nginx has "types {" and "}" around them, and a
// semicolon at the end: up to it, lines that begin with a space go on with the extensions.
void ContentTypes::read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::system_error(ENOENT, std::system_category(), "FileServer: open " + file);
  std::string type;  // empty: the next words are no extensions
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || (line[0] != ' ' && line[0] != '\t')) type.clear();
    std::string text;
    for (const char c : std::string_view(line).substr(0, line.find('#'))) {
      const bool stands_alone = c == ';' || c == '{' || c == '}';
      text += stands_alone ? std::string{' ', c, ' '} : std::string(1, c);
    }
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word == ";" || word == "{" || word == "}") {
        type.clear();
      } else if (word.contains('/')) {
        if (!is_type(word)) refuse("no type", file, word);
        type = word;
      } else if (!type.empty()) {
        types_.emplace(lower_case(word), type);
      }
    }
  }
  if (in.bad()) throw std::system_error(EIO, std::system_category(), "FileServer: read " + file);
}

std::string_view ContentTypes::of(std::string_view path) const {
  if (!types_.empty()) {
    const auto found = types_.find(lower_case(extension_of(path)));
    if (found != types_.end()) return found->second;
  }
  return content_type_of(path);
}

}  // namespace tuza::http
