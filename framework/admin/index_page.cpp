#include <tuza/framework/admin/index_page.h>

#include <array>

namespace tuza {
namespace {

struct Entry {
  std::string_view path, about;
};
constexpr std::array<Entry, 7> kEntries{{
    {"/healthz", "200 while the process can answer at all"},
    {"/readyz", "200, or 503 while the service drains"},
    {"/metrics", "metrics of the runtime, the process and HTTP, for Prometheus"},
    {"/debug/sched", "the scheduler, drawn every second, for browsers"},
    {"/debug/sched.json", "the data behind that page"},
    {"/debug/goroutines", "all goroutines with their stacks; ?stacks=0: without"},
    {"/debug/goroutines?group=1", "the same, identical goroutines together"},
}};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string index_text(std::string_view service) {
  constexpr std::size_t kColumn = 28;
  std::string out = std::string(service) + ": the admin address\n\n";
  for (const auto& [path, about] : kEntries) {
    out.append(path).append(kColumn - path.size(), ' ').append(about).append("\n");
  }
  return out;
}

std::string index_html(std::string_view service) {
  const std::string name = escaped(service);
  std::string out = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + name +
                    ": admin</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<style>:root{color-scheme:light dark}body{font:16px system-ui,sans-serif;margin:2rem}"
                    "dt{margin-top:.8rem}dd{margin:0}</style></head>\n<body><h1>" +
                    name + ": the admin address</h1>\n<dl>\n";
  for (const auto& [path, about] : kEntries) {
    const std::string link = escaped(path);
    out.append("<dt><a href=\"").append(link).append("\">").append(link);
    out.append("</a></dt><dd>").append(escaped(about)).append("</dd>\n");
  }
  return out + "</dl></body></html>\n";
}

}  // namespace tuza
