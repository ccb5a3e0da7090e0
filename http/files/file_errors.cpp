#include <tuza/http/files/file_errors.h>

#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/response_writer.h>
#include <tuza/sched/log.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace tuza::http {
namespace {

int status_of(long error) {
  switch (-error) {
    case EACCES:
    case EPERM: return 403;
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EXDEV:  // the path leads out of the folder
    case ELOOP:
    case ENXIO:  // a socket, a FIFO, a device
    case ENODEV: return 404;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN: return 503;
    default: return 500;
  }
}

}  // namespace

void refuse_file(ResponseWriter& response, long error, std::string_view path) {
  const int status = status_of(error);
  if (status >= 500) {
    static LogLimiter limiter;
    std::string shown;
    detail::append_log_escaped(shown, path);  // decoded, so it may contain anything
    limiter.log(LogLevel::kError,
                "file server: " + shown + ": " + std::system_category().message(static_cast<int>(-error)));
  }
  response.error(status);
}

}  // namespace tuza::http
