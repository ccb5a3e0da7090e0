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
#include <cstdint>
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

// 32 bytes, because each function on the way to a wait has some of them in its frame, and most of these never hold an error:
// what an idle connection costs is its goroutine's stack. Making, copying and ending one is cold: the compiler moves what
// leads there out of the way of calls that succeed.
class [[nodiscard]] Error {
 public:
  // `op` must be a literal: the Error keeps the view and copies nothing.
  [[gnu::cold]] Error(std::error_code code, std::string_view op) noexcept;
  Error(std::error_code code, std::string_view op, std::string subject) : Error(code, op) {
    set_subject(std::move(subject));
  }
  Error(Errc code, std::string_view op) noexcept : Error(make_error_code(code), op) {}
  Error(Errc code, std::string_view op, std::string subject)
      : Error(make_error_code(code), op, std::move(subject)) {}
  [[gnu::cold]] Error(const Error& other);
  // What is moved from keeps its code.
  [[gnu::cold]] Error(Error&& other) noexcept;
  Error& operator=(Error other) noexcept {
    value_ = other.value_;
    op_bytes_ = other.op_bytes_;
    category_ = other.category_;
    op_ = other.op_;
    std::swap(subject_, other.subject_);
    return *this;
  }
  [[gnu::cold]] ~Error();

  // From a positive errno value.
  static Error from_errno(int number, std::string_view op) noexcept {
    return {std::error_code(number, std::system_category()), op};
  }
  static Error from_errno(int number, std::string_view op, std::string subject) {
    return {std::error_code(number, std::system_category()), op, std::move(subject)};
  }

  // With a whole message: errorf().
  static Error from_text(std::error_code code, std::string message) {
    return {code, std::string_view(kWholeMessage).substr(0, 0), std::move(message)};
  }

  // Of errorf(): the code is that of its cause, the op is empty, and the subject is the text.
  [[nodiscard]] std::error_code code() const noexcept { return {value_, *category_}; }
  [[nodiscard]] std::string_view op() const noexcept { return {op_, op_bytes_}; }
  [[nodiscard]] const std::string& subject() const noexcept;

  [[nodiscard]] bool is(Errc code) const { return this->code() == make_error_code(code); }
  [[nodiscard]] bool is(std::errc condition) const { return code() == condition; }
  [[nodiscard]] bool timeout() const { return is(Errc::kTimeout); }
  [[nodiscard]] bool cancelled() const { return is(Errc::kCancelled); }
  [[nodiscard]] bool closed() const { return is(Errc::kClosed); }

  // "listen 127.0.0.1:8080: Address already in use"; of errorf(), its text.
  [[nodiscard]] std::string message() const;

 private:
  static constexpr char kWholeMessage[] = "";  // op_ points here if the subject is the message

  void set_subject(std::string subject);

  int value_;
  std::uint32_t op_bytes_;
  const std::error_category* category_;
  const char* op_;
  const std::string* subject_ = nullptr;  // owned; null: empty
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace tuza

template <>
struct std::is_error_code_enum<tuza::Errc> : std::true_type {};
