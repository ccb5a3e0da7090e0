#include <tuza/http/status_error.h>

#include <tuza/http/status.h>

namespace tuza::http {

StatusError::StatusError(int status, const std::string& text)
    : std::runtime_error(text.empty() ? std::string(reason_phrase(status)) : text), status_(status) {
  if (status < 400 || status > 599) {
    throw std::invalid_argument("StatusError: not a status of an error: " + std::to_string(status));
  }
}

}  // namespace tuza::http
