// Public header, part of <tuza/http.h>.
//
// An exception that is an answer: the handler ends, and the client gets this status.
//
//     if (!user.may_write()) throw http::StatusError(403, "this note is read-only");
//
// As ResponseWriter::error(): fields set before are kept, except those that describe a body. The connection stays open,
// and nothing is logged. After the response has begun it is an exception like others: the response is cut off.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <stdexcept>
#include <string>

namespace tuza::http {

class StatusError : public std::runtime_error {
 public:
  // `status`: 400 to 599, std::invalid_argument otherwise. `text` is for the client; if empty, the status's usual phrase.
  explicit StatusError(int status, const std::string& text = {});
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_;
};

}  // namespace tuza::http
