#include <tuza/http/files/listing.h>
#include <tuza/netpoll/files/stat_times.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/http/files/file_content.h>
#include <tuza/http/files/file_errors.h>
#include <tuza/http/files/http_date.h>
#include <tuza/http/files/open_beneath.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/serve/vary.h>
#include <tuza/http/url.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/files/file_calls.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

struct Listed {
  std::string name;
  bool is_file = false;  // otherwise a folder
  std::uint64_t size = 0;
  std::chrono::sys_seconds modified;
};
struct Listing {
  std::vector<Listed> entries;  // folders first, then by name
  bool complete = true;
};

constexpr std::string_view kStyle =
    "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th{text-align:left}td,th{padding:.15rem .5rem}"
    "td+td,th+th{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "tr:hover td{background:#8881}a{text-decoration:none}a:hover{text-decoration:underline}"
    ":root{color-scheme:light dark}";

// What FileServer would serve of this name; nullopt: nothing.
std::optional<Listed> look_at(int root, const std::string& path, int folder, const std::string& name) {
  struct stat info{};
  if (blocking_syscall(sys::fstatat, folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return std::nullopt;
  if (S_ISLNK(info.st_mode) && stat_beneath(root, path + name, info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return std::nullopt;
  return Listed{
      .name = name,
      .is_file = S_ISREG(info.st_mode),
      .size = static_cast<std::uint64_t>(info.st_size),
      .modified = std::chrono::floor<std::chrono::seconds>(time_of(tuza::detail::modified_at(info)))};
}

Result<Listing> list(int root, const std::string& path, int fd, bool dots) {
  Directory directory = Directory::adopt(fd, path);
  Listing listing;
  for (;;) {
    Result<std::optional<DirectoryEntry>> entry = directory.next();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) break;
    const std::string& name = (*entry)->name;
    if (!dots && name.starts_with('.') && name != ".well-known") continue;
    if (listing.entries.size() == kListedMax) {
      listing.complete = false;
      break;
    }
    if (std::optional<Listed> listed = look_at(root, path, fd, name)) {
      listing.entries.push_back(std::move(*listed));
    }
  }
  std::ranges::sort(listing.entries, [](const Listed& a, const Listed& b) {
    return std::tie(a.is_file, a.name) < std::tie(b.is_file, b.name);
  });
  return listing;
}

// Relative to the folder. The "./" keeps a colon in the name from looking like a scheme.
std::string href_of(const Listed& entry) {
  const std::string href = "./" + path_escape(entry.name);
  return entry.is_file ? href : href + "/";
}

// Bytes that are not UTF-8, and control characters, become U+FFFD.
void append_html(std::string& out, std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const detail::Utf8Char c = detail::utf8_char(text);
    if (c.bytes == 0 || c.code < 0x20 || c.code == 0x7f) {
      clean += "\xef\xbf\xbd";
    } else {
      clean += text.substr(0, c.bytes);
    }
    text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
  }
  out += detail::html_escaped(clean);
}

// "2026-11-22 02:52:30", with `between` in the middle.
std::string time_text(std::chrono::sys_seconds time, char between) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text;
  const int n =
      std::snprintf(text.data(), text.size(), "%04d-%02u-%02u%c%02d:%02d:%02d", static_cast<int>(date.year()),
                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), between,
                    static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                    static_cast<int>(clock.seconds().count()));
  return {text.data(), static_cast<std::size_t>(n)};
}

// "812", "1.5 KiB"
std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes);
  constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; size >= 1023.95; ++unit) size /= 1024;
  std::array<char, 32> text;
  const int n = std::snprintf(text.data(), text.size(), "%.1f %s", size, kUnits[unit]);
  return {text.data(), static_cast<std::size_t>(n)};
}

std::string as_html(const Listing& listing, std::string_view shown_path, bool is_top) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
  append_html(page, shown_path);
  page.append("</title>\n<style>").append(kStyle).append("</style></head>\n<body>\n<h1><bdi>");
  append_html(page, shown_path);
  page +=
      "</bdi></h1>\n<table>\n<thead><tr><th>Name</th><th>Size</th><th>Modified "
      "(UTC)</th></tr></thead>\n<tbody>\n";
  if (!is_top) page += "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n";
  for (const Listed& entry : listing.entries) {
    page.append("<tr><td><a href=\"").append(href_of(entry)).append("\"><bdi>");
    append_html(page, entry.name);
    page.append(entry.is_file ? "" : "/").append("</bdi></a></td><td>");
    if (entry.is_file) page += size_text(entry.size);
    page.append("</td><td>").append(time_text(entry.modified, ' ')).append("</td></tr>\n");
  }
  page += "</tbody>\n</table>\n";
  if (!listing.complete) page += "<p>There are more entries, which are not shown.</p>\n";
  return page + "</body>\n</html>\n";
}

std::string as_json(const Listing& listing, std::string_view shown_path) {
  std::string text = "{\"path\":\"" + detail::json_escaped(shown_path) +
                     "\",\"complete\":" + (listing.complete ? "true" : "false") + ",\"entries\":[";
  for (const Listed& entry : listing.entries) {
    text += &entry == listing.entries.data() ? "\n" : ",\n";
    text += "{\"name\":\"" + detail::json_escaped(entry.name) + "\",\"href\":\"" + href_of(entry) +
            "\",\"type\":\"" + (entry.is_file ? "file" : "folder") + "\",";
    if (entry.is_file) text += "\"size\":" + std::to_string(entry.size) + ",";
    text += "\"modified\":\"" + time_text(entry.modified, 'T') + "Z\"}";
  }
  return text + "\n]}\n";
}

}  // namespace

void send_listing(const Request& request, ResponseWriter& response, int root, const std::string& path,
                  bool dots) {
  const long fd = open_beneath(root, path.empty() ? "." : path.substr(0, path.size() - 1), O_DIRECTORY);
  if (fd < 0) return refuse_file(response, fd, path);
  const Result<Listing> listing = list(root, path, static_cast<int>(fd), dots);
  if (!listing) return refuse_file(response, -listing.error().code().value(), path);
  // The path that the client knows: what the folder is called here is nobody's business.
  std::string shown;
  append_unescaped(shown, std::string(request.mount_path()) + std::string(request.path()));
  const bool json = request.accepts({"text/html", "application/json"}) == "application/json";
  add_vary(response, response.headers(), "Accept");
  if (json) return response.json(as_json(*listing, shown));
  if (!response.header("Content-Security-Policy")) {
    response.set_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
  }
  response.html(as_html(*listing, shown, path.empty()));
}

}  // namespace tuza::http
