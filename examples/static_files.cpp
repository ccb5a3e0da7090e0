// A server for the files of a folder: static_files --set files.folder=/srv/www
#include <tuza/framework/app.h>
#include <tuza/http/file_server.h>

int main(int argc, char** argv) {
  tuza::App app("static_files");
  const auto folder = app.setting("files.folder", ".", "The folder whose files are served");
  const auto index =
      app.setting("files.index", "index.html", "What answers for a path that ends with a slash");
  const auto cache_control =
      app.setting("files.cache_control", "no-cache", "The Cache-Control header; empty: none");
  return app.run(argc, argv, [&] {
    for (const char* pattern : {"/", "/{path...}"}) {
      app.router().handle(
          pattern, tuza::http::FileServer(*folder, {.index = *index, .cache_control = *cache_control}));
    }
  });
}
