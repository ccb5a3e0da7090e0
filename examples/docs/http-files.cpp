// The code of docs/guide/http-files.md.
#include <tuza/http.h>
#include <tuza/net.h>

#include <string>
#include <string_view>

namespace {

namespace http = tuza::http;
using http::Request;
using http::ResponseWriter;

std::string path_of_report(int) { return {}; }
constexpr std::string_view kScript = "alert();\n";

void folders(http::Router& router) {
  //! [folder]
  router.handle("/assets/", http::FileServer("/srv/assets", {.prefix = "/assets/",
                                                             .cache_control = "max-age=3600",
                                                             .precompressed = {"br", "gzip"}}));
  router.handle("/pub/", http::FileServer("/srv/pub", {.prefix = "/pub/", .listing = true}));
  //! [folder]
  //! [content]
  router.handle("GET /app.js", [](Request&, ResponseWriter& res) {
    res.send_content(kScript, {.name = "app.js", .cache_control = "max-age=300"});
  });
  //! [content]
}

//! [one]
void send_report(Request& req, ResponseWriter& res) {
  const int id = req.path_value<int>("id");
  res.send_file(path_of_report(id), {.cache_control = "private", .download_name = "report.pdf"});
}

void down(Request&, ResponseWriter& res) {
  res.status(503);
  res.send_file("/srv/pages/down.html");  // whole, whatever the client asks for
}
//! [one]

//! [part]
void framed(const tuza::File& file, std::uint64_t size, ResponseWriter& res) {
  const tuza::File::Number number(file);
  res.set_header("Content-Length", std::to_string(size + 2));
  if (!res.write("<") || !res.write_file({number.fd(), 0, size})) return;
  (void)res.write(">");
}
//! [part]

}  // namespace

// Compiled, not run.
void tuza_docs_http_files() {
  http::Router router;
  folders(router);
  router.handle("GET /reports/{id}", send_report);
  router.handle("GET /", down);
  const tuza::File file;
  router.handle("GET /framed", [&file](Request&, ResponseWriter& res) { framed(file, 7, res); });
}
