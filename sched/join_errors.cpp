#include <tuza/sched/join_errors.h>

namespace tuza::detail {

void JoinedErrors::add(const Error& error) {
  if (!first_) {
    first_ = error;
    return;
  }
  if (message_.empty()) {
    code_ = first_->code();
    message_ = first_->message();
  }
  if (error.code() != code_) code_ = make_error_code(Errc::kOther);
  message_.append("; ").append(error.message());
}

Result<void> JoinedErrors::get() const {
  if (!first_) return {};
  if (message_.empty()) return std::unexpected(*first_);
  return std::unexpected(Error::from_text(code_, message_));
}

}  // namespace tuza::detail
