// Public header, part of <tuza/tuza.h>.
//
// Errors of the outside world, as values.
//
//     tuza::Result<Conn> conn = dial("tcp", "db:5432");
//     if (!conn) return std::unexpected(conn.error());       // or: log(conn.error().message())
//
// An Error states the attempted operation (op), its object (subject), and the system's answer (code).
// TUZA_TRY() (sched/try.h) is short for the `if`; errorf() (sched/errorf.h) adds words of your own.
// Programming errors are not Errors: they abort.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/detail/sanitizers.h>

#include <cerrno>
#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace tuza {

// Conditions for which the operating system has no error number.
// kTimeout is equivalent to std::errc::timed_out, and kCancelled to std::errc::operation_canceled: a
// test for the condition finds the deadline of a call as well as the kernel's own ETIMEDOUT.
enum class Errc {
  kClosed = 1,      // the object was closed, before or during the call
  kTimeout,         // its deadline passed
  kCancelled,       // its context was cancelled
  kEndOfStream,     // the peer ended the stream in the middle of a unit of data
  kBadAddress,      // the text is not an address
  kNoSuchHost,      // the name does not exist, or has no address of the version asked for
  kBadMessage,      // the peer's message violates the protocol
  kNotRunning,      // no tuza::run is active
  kOther,           // an error of the program's own, made by errorf() without a cause
  kResolverFailed,  // the name servers gave no answer about the name: the same call may succeed later
};

const std::error_category& error_category();
inline std::error_code make_error_code(Errc code) { return {static_cast<int>(code), error_category()}; }

class [[nodiscard]] Error {
 public:
  // `op` must be a literal: the Error keeps the view and copies nothing.
  Error(std::error_code code, std::string_view op, std::string subject = {})
      : code_(code), op_(op), subject_(std::move(subject)) {}
  Error(Errc code, std::string_view op, std::string subject = {})
      : Error(make_error_code(code), op, std::move(subject)) {}

  // From a positive errno value.
  static Error from_errno(int number, std::string_view op, std::string subject = {}) {
    return {std::error_code(number, std::system_category()), op, std::move(subject)};
  }

  // With a whole message: errorf().
  static Error from_text(std::error_code code, std::string message) {
    return {code, std::string_view(kWholeMessage).substr(0, 0), std::move(message)};
  }

  // Of errorf(): the code is that of its cause, the op is empty, and the subject is the text.
  [[nodiscard]] std::error_code code() const { return code_; }
  [[nodiscard]] std::string_view op() const { return op_; }
  [[nodiscard]] const std::string& subject() const { return subject_; }

  [[nodiscard]] bool is(Errc code) const { return code_ == make_error_code(code); }
  [[nodiscard]] bool is(std::errc condition) const { return code_ == condition; }
  [[nodiscard]] bool timeout() const { return is(Errc::kTimeout); }
  [[nodiscard]] bool cancelled() const { return is(Errc::kCancelled); }
  [[nodiscard]] bool closed() const { return is(Errc::kClosed); }

  // "listen 127.0.0.1:8080: Address already in use"; of errorf(), its text.
  [[nodiscard]] std::string message() const;

 private:
  static constexpr char kWholeMessage[] = "";  // op_ points here if subject_ is the message

  std::error_code code_;
  std::string_view op_;
  std::string subject_;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace tuza

template <>
struct std::is_error_code_enum<tuza::Errc> : std::true_type {};
