// A server for the files of a folder: static_files --set files.folder=/srv/www
#include <tuza/framework/app.h>
#include <tuza/http/file_server.h>

#include <string>

int main(int argc, char** argv) {
  tuza::App app("static_files");
  const auto folder = app.setting("files.folder", ".", "The folder whose files are served");
  folder.check([](const std::string& path) { tuza::http::FileServer server(path); });
  const auto index =
      app.setting("files.index", "index.html", "What answers for a path that ends with a slash");
  const auto cache_control =
      app.setting("files.cache_control", "no-cache", "The Cache-Control header; empty: none");
  const auto listing = app.setting("files.listing", false, "List folders that have no index");
  const auto precompressed =
      app.setting("files.precompressed", false, "Answer with x.br, x.zst or x.gz, if it lies beside x");
  const auto types =
      app.setting("files.types", "", "A file of types by extension, such as /etc/mime.types; empty: none");
  types.check([](const std::string& file) { tuza::http::FileServer server(".", {.types_file = file}); });
  const auto cache = app.setting("files.cache", tuza::Bytes{8 << 20}, "Memory for small files; 0B: none");
  return app.run(argc, argv, [&] {
    tuza::http::FileServerOptions options{
        .index = *index, .cache_control = *cache_control, .listing = *listing};
    options.types_file = *types;
    if (*precompressed) options.precompressed = {"br", "zstd", "gzip"};
    options.cache_bytes_max = static_cast<std::size_t>(cache->count);
    app.router().handle("GET /", tuza::http::FileServer(*folder, options));
  });
}
