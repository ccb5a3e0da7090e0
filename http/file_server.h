// Public header, part of <tuza/http.h>.
//
// A handler that serves static files.
//
//     router.handle("/assets/", tuza::http::FileServer("/srv/assets", {.prefix = "/assets/"}));
//
// Serves GET and HEAD of regular files below a folder, with Content-Type, Content-Length, Last-Modified and
// ETag; conditional requests (RFC 9110 13), and ranges, single or multiple (14). "/dir/" is answered with
// dir/index.html; "/dir" is redirected to "/dir/". Other methods get 405 with Allow. There are no directory
// listings and no compression.
//
// Refused with 404, even if the file exists: anything outside the folder, whether reached by ".." or by a
// symbolic link, however encoded; names that begin with a dot (see the options); FIFOs, sockets, devices.
// Refused with 403: files that the process may not read. The type of a file is known only once the file is
// open. A FIFO or a device is therefore opened, without waiting (O_NONBLOCK, O_NOCTTY), and closed again; a
// process that waits to write to such a FIFO sees a reader come and go. Keep FIFOs and devices out of the
// folder.
//
// Files are read with blocking calls (netpoll/file.h), in pieces of 64 KiB that are sent without another
// copy. That is the memory of a response, in addition to the connection's own and, over TLS, two buffers of
// 33 KiB. If a file shrinks while it is sent, or can no longer be read, the connection is closed in the
// middle of the body, so that the client sees that the response is incomplete. Data appended meanwhile is not
// sent. If files are replaced by renaming, every response consists of a single version.
//
// The ETag is made of inode, size and modification time. A file modified less than two seconds ago might
// change again without changing these, so its tag is weak (ranges with If-Range get the whole file).
//
// Thread-safe. FileServer is a Handler: its calls park.
#pragma once

#include <tuza/http/handler.h>

#include <memory>
#include <string>
#include <string_view>

namespace tuza::http {

struct FileServerOptions {
  std::string prefix = "/";                // of the request path; ends with "/"; the rest is below the folder
  std::string index = "index.html";        // for paths that end with "/"; empty: such paths get 404
  std::string cache_control = "";          // value of that header; empty: no header
  bool names_that_begin_with_dot = false;  // .git, .env; .well-known (RFC 8615) is always served
};

class FileServer {
 public:
  // Throws std::system_error, naming the folder, if the folder cannot be opened; std::invalid_argument for a
  // prefix that does not begin and end with "/", and for control characters in cache_control. The server
  // keeps serving the folder opened here, even if the folder is renamed.
  explicit FileServer(std::string_view folder, FileServerOptions options = {});
  FileServer(FileServer&&) noexcept;
  FileServer& operator=(FileServer&&) noexcept;
  ~FileServer();

  void operator()(Request& request, ResponseWriter& response) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace tuza::http
