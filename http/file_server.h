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
// The folder is what its path names: if the path is switched to another folder (a symbolic link, or a folder that is deleted
// and made again), the new one is served, at once for what is not in the cache, and after cache_age_max otherwise. No
// response has something of both. While the path names no folder, the last one is served.
//
// Refused with 404, even if the file exists: anything outside the folder, whether reached by ".." or by a
// symbolic link, however encoded (links inside are relative: those with an absolute path are refused wherever they lead); names that begin with a dot (see the options); FIFOs, sockets, devices, which are not
// even opened. Refused with 403: files that the process may not read.
//
// Files of up to 64 KiB and cached ones are sent from memory. Others are sent by sendfile(2): a response that waits for its client
// holds no memory for the file. Over TLS, and for a client behind compress(), it holds 32 KiB, and over TLS two buffers of
// 33 KiB besides. If a file shrinks while it is sent, or can no longer be read, the connection is closed in the
// middle of the body, so that the client sees that the response is incomplete. Data appended meanwhile is not
// sent. If files are replaced by renaming, every response consists of a single version.
//
// The ETag of a file of up to 16 MiB is a hash of its content, so that replicas with the same files agree, and another content
// has another tag. So is that of one of up to 256 MiB whose time of modification has been set. That of a larger one is made of
// size, times and samples of the content. Lately modified ones beyond 64 KiB have a weak tag: ranges with If-Range
// get the whole file. A file that was changed less than two seconds ago is not cached. Modification times up to 1980, which
// tools for reproducible builds set, are no Last-Modified.
//
// Thread-safe. FileServer is a Handler: its calls park. Disk reads block the thread, as those of File do (netpoll/file.h).
#pragma once

#include <tuza/http/handler.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

  // Types of files by extension, {"usdz", "model/vnd.usdz+zip"}, and a file of more of them, in the form of Apache's or nginx's
  // mime.types: "/etc/mime.types" is the system's. The options precede the file, which precedes the table that is built in.
  std::vector<std::pair<std::string, std::string>> types{};
  std::string types_file{};

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
  // Throws std::system_error, naming the folder or the file of types, if it cannot be opened; std::invalid_argument for a
  // prefix that does not begin and end with "/", for control characters in cache_control, for an unknown coding, for a type
  // that is none, and for cache_age_max outside of 0 to 1 s. A relative path is relative to the working directory of now.
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
