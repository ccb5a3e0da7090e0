// Public header, part of <tuza/http.h>.
//
// Static files.
//
//     router.handle("/assets/", tuza::http::FileServer("/srv/assets", {.prefix = "/assets/"}));
//
// GET and HEAD of regular files below a folder, with Content-Type, Content-Length, Last-Modified and ETag;
// conditional requests (RFC 9110 13) and ranges, one or several (14). "/dir/" is answered by dir/index.html,
// "/dir" redirected to "/dir/". Other methods get 405 with Allow. Nothing is listed, nothing compressed.
//
// What is not served, though the file system has it (404): anything outside of the folder, by ".." or by a
// symbolic link, however encoded; names that begin with a dot (options); FIFOs, sockets, devices. 403: the
// system does not let us read it. What a name is shows only when it is open: a FIFO and a device are opened,
// without waiting (O_NONBLOCK, O_NOCTTY), and closed again; who waits to write to such a FIFO sees a reader
// come and go. Keep them out of the folder.
//
// Files are read as blocking calls (netpoll/file.h), in pieces of 64 KiB, which are sent from where they were
// read: that is the memory of a response, beside the connection's own and, over TLS, two buffers of 33 KiB.
// If a file shrinks while it is sent, or cannot be read any more, the connection is closed in the middle of
// the body, so that the client sees that it has not got all. What is added meanwhile is not sent. Replace
// files by renaming, and every response is of one version.
//
// The ETag is made of inode, size and time of modification. While that time is less than two seconds ago the
// file might change again without a trace, and the tag is weak (ranges with If-Range get the whole file).
//
// Thread-safe. A Handler: calls park.
#pragma once

#include <tuza/http/handler.h>

#include <memory>
#include <string>
#include <string_view>

namespace tuza::http {

struct FileServerOptions {
  std::string prefix = "/";          // of the request's path, ends with "/"; the rest is below the folder
  std::string index = "index.html";  // for paths that end with "/"; empty: those are 404
  std::string cache_control = "";    // that header's value; empty: none
  bool names_that_begin_with_dot = false;  // .git, .env; but .well-known (RFC 8615) is served always
};

class FileServer {
 public:
  // Throws std::system_error, naming the folder, if it cannot be opened; std::invalid_argument for a prefix
  // that does not begin and end with "/", and for control characters in cache_control. The folder stays the
  // one that is there now, even if it is renamed.
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
