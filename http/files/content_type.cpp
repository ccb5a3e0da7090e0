#include <tuza/http/files/content_type.h>

#include <tuza/http/wire/chars.h>

namespace tuza::http {
namespace {

struct Entry {
  std::string_view extension, type;
};

constexpr Entry kTypes[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"webmanifest", "application/manifest+json"},
    {"txt", "text/plain; charset=utf-8"},
    {"log", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"atom", "application/atom+xml"},
    {"rss", "application/rss+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"avif", "image/avif"},
    {"svg", "image/svg+xml"},
    {"ico", "image/vnd.microsoft.icon"},
    {"bmp", "image/bmp"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"ttf", "font/ttf"},
    {"otf", "font/otf"},
    {"mp3", "audio/mpeg"},
    {"m4a", "audio/mp4"},
    {"ogg", "audio/ogg"},
    {"opus", "audio/ogg"},
    {"flac", "audio/flac"},
    {"wav", "audio/wav"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"pdf", "application/pdf"},
    {"epub", "application/epub+zip"},
    {"zip", "application/zip"},
    {"gz", "application/gzip"},
    {"zst", "application/zstd"},
    {"tar", "application/x-tar"},
    {"wasm", "application/wasm"},
};

}  // namespace

std::string_view content_type_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot != 0) {
    for (const Entry& entry : kTypes) {
      if (equals_ignoring_case(entry.extension, name.substr(dot + 1))) return entry.type;
    }
  }
  return "application/octet-stream";
}

}  // namespace tuza::http
