#include <tuza/http/file_server.h>

#include <sys/stat.h>
#include <tuza/http/files/content_type.h>
#include <tuza/http/files/file_path.h>
#include <tuza/http/files/open_beneath.h>
#include <tuza/http/files/send_file.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/sched/log.h>

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tuza::http {
namespace {

OpenFile folder_or_throw(std::string_view path) {
  const long fd = open_folder(std::string(path));
  if (fd < 0)
    throw std::system_error(static_cast<int>(-fd), std::system_category(), "open " + std::string(path));
  return OpenFile(static_cast<int>(fd));
}

// Maps an open(2) error to the status for the client.
int status_of(long error) {
  switch (-error) {
    case EACCES:
    case EPERM: return 403;
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EXDEV:  // the path leads out of the folder
    case ELOOP:
    case ENXIO:  // a socket
    case ENODEV: return 404;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: return 503;
    default: return 500;
  }
}

void refuse(ResponseWriter& response, long error, const std::string& path) {
  const int status = status_of(error);
  if (status >= 500) {
    static LogLimiter limiter;
    limiter.log(LogLevel::kError,
                "file server: " + path + ": " + std::system_category().message(static_cast<int>(-error)));
  }
  response.error(status);
}

// True when descriptors are almost exhausted. The kernel assigns the lowest free number, so a high number
// means that few are left.
bool is_one_of_the_last(int fd) {
  return static_cast<std::size_t>(fd) + net::kDescriptorsForOthers / 2 >= net::descriptors_allowed();
}

// Redirects "/dir?x" to "/dir/?x". The path begins with a single slash; with two, it would name a host.
void redirect_to_folder(const Request& request, ResponseWriter& response) {
  std::string location(request.path());
  location += '/';
  if (!request.query().empty()) location.append("?").append(request.query());
  response.status(301);
  response.header("Location", location);
  response.text("Moved Permanently\n");
}

}  // namespace

struct FileServer::State {
  OpenFile folder;
  FileServerOptions options;
};

FileServer::FileServer(std::string_view folder, FileServerOptions options) {
  const std::string& prefix = options.prefix;
  if (prefix.empty() || prefix.front() != '/' || prefix.back() != '/') {
    throw std::invalid_argument("FileServer: the prefix \"" + prefix +
                                "\" does not begin and end with \"/\"");
  }
  if (has_control_char(options.cache_control)) {
    throw std::invalid_argument("FileServer: a control character in the Cache-Control header");
  }
  state_ = std::make_unique<const State>(folder_or_throw(folder), std::move(options));
}
FileServer::FileServer(FileServer&&) noexcept = default;
FileServer& FileServer::operator=(FileServer&&) noexcept = default;
FileServer::~FileServer() = default;

void FileServer::operator()(Request& request, ResponseWriter& response) const {
  const FileServerOptions& options = state_->options;
  if (request.method() != Method::kGet && request.method() != Method::kHead) {
    response.status(405);
    response.header("Allow", "GET, HEAD");
    return response.text("Method Not Allowed\n");
  }
  const std::string_view encoded = request.path();
  if (!encoded.starts_with(options.prefix)) return response.error(404);
  std::optional<std::string> path =
      file_path(encoded.substr(options.prefix.size()), options.names_that_begin_with_dot);
  if (!path) return response.error(404);
  const bool folder = path->empty() || path->back() == '/';
  if (folder && options.index.empty()) return response.error(404);
  if (folder) *path += options.index;
  const long fd = open_beneath(state_->folder.fd(), *path);
  if (fd < 0) return refuse(response, fd, *path);
  const OpenFile file(static_cast<int>(fd));
  if (is_one_of_the_last(file.fd())) return refuse(response, -EMFILE, *path);
  struct stat info{};
  if (const long error = file.stat(info); error < 0) return refuse(response, error, *path);
  if (S_ISDIR(info.st_mode) && !folder) return redirect_to_folder(request, response);
  if (!S_ISREG(info.st_mode)) return response.error(404);
  send_file(request, response, file, info, content_type_of(*path), options.cache_control);
}

}  // namespace tuza::http
