// Uploads with progress, limits and a list: upload --set upload.folder=/srv/photos
//
//     GET  /                 the page
//     GET  /files            [{"id": ..., "name": ..., "bytes": ...}]
//     POST /files            multipart/form-data: 201 and what was stored; 413 beyond a limit, 507 if the disk is full; files in front
//                            of one that is refused stay. 403 for pages of other origins
//     GET  /files/{id}       the file, as a download
//
// A file is stored under a random name, its id. Its name for people is kept beside it, in "<id>.name", and is only shown.
#include <tuza/examples/upload/page.h>
#include <tuza/framework/app.h>
#include <tuza/http/middleware/csrf.h>
#include <tuza/http/multipart.h>
#include <tuza/http/nlohmann_json.h>
#include <tuza/http/status_error.h>
#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/filesystem.h>

#include <algorithm>
#include <expected>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using tuza::http::Request;
using tuza::http::ResponseWriter;
using Json = nlohmann::json;

constexpr std::string_view kNameSuffix = ".name";
constexpr std::uint64_t kFormBytesMax = 64 << 10;  // of what surrounds the file

// The ids that this program makes: other paths must not reach the folder.
bool is_id(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Nothing while its upload is under way, and after one that has broken off: it has no name yet.
std::optional<Json> describe(const std::string& folder, std::string_view id) {
  const std::string path = folder + "/" + std::string(id);
  const auto info = tuza::fs::stat(path);
  auto named = tuza::File::open(path + std::string(kNameSuffix));
  if (!info || !named) return std::nullopt;
  const auto name = named->read_all(4096);
  return Json{{"id", id}, {"name", name.value_or("file")}, {"bytes", info->size_bytes}};
}

void list(const std::string& folder, Request&, ResponseWriter& res) {
  const auto entries = tuza::fs::list(folder);
  if (!entries) throw std::runtime_error(entries.error().message());
  Json files = Json::array();
  for (const auto& entry : *entries) {
    const auto file = is_id(entry.name) ? describe(folder, entry.name) : std::nullopt;
    if (file) files.push_back(*file);
  }
  res.json(files);
}

void store(const std::string& folder, std::uint64_t bytes_max, Request& req, ResponseWriter& res) {
  tuza::http::Multipart form(req,
                             {.file_bytes_max = bytes_max, .total_bytes_max = bytes_max + kFormBytesMax});
  Json stored = Json::array();
  for (tuza::http::Part& part : form) {
    if (!part.is_file() || part.file_name()->empty())
      continue;  // a form without a chosen file sends an empty name
    const tuza::http::SavedFile file = part.save(folder);
    auto name = tuza::File::create(file.path + std::string(kNameSuffix), 0600);
    if (!name || !name->write_all(part.safe_file_name())) {
      (void)tuza::fs::remove(file.path);
      (void)tuza::fs::remove(file.path + std::string(kNameSuffix));
      throw tuza::http::StatusError(507);
    }
    if (const auto described = describe(folder, file.name)) stored.push_back(*described);
  }
  if (stored.empty()) throw tuza::http::StatusError(400, "no file was sent");
  res.json(201, stored);
}

void download(const std::string& folder, Request& req, ResponseWriter& res) {
  const auto id = req.path_value("id").value_or("");
  if (!is_id(id)) return res.error(404);
  const auto file = describe(folder, id);
  if (!file) return res.error(404);
  // Never shown in the page's own origin, whatever it contains.
  res.set_header("X-Content-Type-Options", "nosniff");
  res.send_file(folder + "/" + std::string(id),
                {.content_type = "application/octet-stream",
                 .download_name = file->at("name").get_ref<const std::string&>()});
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("upload");
  app.set_default("http.body_max", "128MiB");  // the example's own limit is below
  const auto folder = app.setting("upload.folder", ".", "Where the files are stored; it exists");
  folder.check([](const std::string& path) -> tuza::Result<void> {
    const auto opened = tuza::Directory::open(path);
    if (!opened) return std::unexpected(opened.error());
    return {};
  });
  const auto file_max =
      app.setting("upload.file_max", tuza::Bytes{100 << 20}, "Maximum size of a file; larger: 413");
  return app.run(argc, argv, [&] {
    app.router().use(tuza::http::csrf());  // any page may send a form
    app.router().handle("GET /{$}", [](Request&, ResponseWriter& res) {
      res.set_header(
          "Content-Security-Policy",
          "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'");
      res.html(upload::kPage);
    });
    app.router().handle("GET /files", [&](Request& req, ResponseWriter& res) { list(*folder, req, res); });
    app.router().handle("POST /files", [&](Request& req, ResponseWriter& res) {
      store(*folder, static_cast<std::uint64_t>(file_max->count), req, res);
    });
    app.router().handle("GET /files/{id}",
                        [&](Request& req, ResponseWriter& res) { download(*folder, req, res); });
  });
}
