// Public header, part of <tuza/http.h>.
//
// A handler that serves static files.
//
//     router.handle("/assets/", tuza::http::FileServer("/srv/assets", {.prefix = "/assets/"}));
//
// Serves GET and HEAD of regular files below a folder, with Content-Type, Content-Length, Last-Modified and
// ETag; conditional requests (RFC 9110 13), and ranges, single or multiple (14). "/dir/" is answered with
// dir/index.html, or with a listing if that is allowed; "/dir" is redirected to "/dir/". Other methods get 405 with Allow.
// A single file: ResponseWriter::send_file().
//
// Fields that the program or middleware has set before stay, and take the place of those that FileServer would set:
// Content-Type, Cache-Control, ETag and Last-Modified (which conditions are then about), Content-Encoding.
//
// Refused with 404, even if the file exists: anything outside the folder, whether reached by ".." or by a
// symbolic link, however encoded; names that begin with a dot (see the options); FIFOs, sockets, devices, which are not
// even opened. Refused with 403: files that the process may not read.
//
// Small files are sent from memory (see the options). Others are sent by sendfile(2): a response that waits for its client
// holds no memory for the file. Over TLS, and for a client behind compress(), it holds 32 KiB, and over TLS two buffers of
// 33 KiB besides. If a file shrinks while it is sent, or can no longer be read, the connection is closed in the
// middle of the body, so that the client sees that the response is incomplete. Data appended meanwhile is not
// sent. If files are replaced by renaming, every response consists of a single version.
//
// The ETag is made of inode, size and modification time. A file modified less than two seconds ago might
// change again without changing these, so its tag is weak (ranges with If-Range get the whole file), and it is not cached.
//
// Thread-safe. FileServer is a Handler: its calls park. Disk reads block the thread, as those of File do (netpoll/file.h).
#pragma once

#include <tuza/http/handler.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct FileServerOptions {
  // Of the request path; ends with "/"; the rest is below the folder. Compared decoded, segment by segment, as patterns.
  std::string prefix = "/";
  std::string index = "index.html";        // for paths that end with "/"; empty: such paths get 404
  std::string cache_control = {};          // value of that header; empty: no header
  bool names_that_begin_with_dot = false;  // .git, .env; .well-known (RFC 8615) is always served
  // For folders without an index: a page with names, sizes and times, or the same as JSON if the client prefers that
  // (Accept). What would be refused is not in it. At most 10,000 entries.
  bool listing = false;
  // Of "br", "zstd", "gzip", in the order of preference: app.js is answered with app.js.br, app.js.zst or app.js.gz, if that
  // lies beside app.js and the client accepts the coding (Accept-Encoding). With "Vary: Accept-Encoding", the type of app.js,
  // and an ETag of its own. One that is older than app.js, in seconds, is not served.
  std::vector<std::string> precompressed{};

  // Files of up to `cache_file_bytes_max` are kept in memory: `cache_entries_max` of them, and `cache_bytes_max` in all,
  // those included that are being sent. 0 turns the cache off. A file that is replaced, changed or removed is served as it
  // is after `cache_age_max` at the latest, 1 s at most.
  std::size_t cache_bytes_max = std::size_t{8} << 20;
  std::size_t cache_entries_max = 1024;
  std::size_t cache_file_bytes_max = std::size_t{64} << 10;
  std::chrono::milliseconds cache_age_max{500};
};

class FileServer {
 public:
  // Throws std::system_error, naming the folder, if the folder cannot be opened; std::invalid_argument for a
  // prefix that does not begin and end with "/", for control characters in cache_control, for an unknown coding, and for
  // cache_age_max outside of 0 to 1 s. The server keeps serving the folder opened here, even if the folder is renamed.
  explicit FileServer(std::string_view folder, FileServerOptions options = {});
  FileServer(FileServer&&) noexcept;
  FileServer& operator=(FileServer&&) noexcept;
  ~FileServer();

  void operator()(Request& request, ResponseWriter& response) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuza::http
