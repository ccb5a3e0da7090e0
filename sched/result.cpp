#include <tuza/sched/result.h>

#include <string>
#include <utility>

namespace tuza {
namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tuza"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::kClosed: return "use of a closed connection, listener or file";
      case Errc::kTimeout: return "deadline exceeded";
      case Errc::kCancelled: return "context cancelled";
      case Errc::kEndOfStream: return "unexpected end of stream";
      case Errc::kBadAddress: return "invalid address";
      case Errc::kNoSuchHost: return "no such host";
      case Errc::kBadMessage: return "malformed message";
      case Errc::kNotRunning: return "no runtime: call it inside tuza::run";
      case Errc::kOther: return "error";
      case Errc::kResolverFailed: return "no answer from the name servers";
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::kTimeout: return std::errc::timed_out;
      case Errc::kCancelled: return std::errc::operation_canceled;
      default: return {code, *this};
    }
  }
};

// Never destroyed: a thread may outlive static objects.
union NoSubject {
  NoSubject() : text() {}
  ~NoSubject() {}
  NoSubject(const NoSubject&) = delete;
  NoSubject& operator=(const NoSubject&) = delete;
  const std::string text;
};

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

static_assert(sizeof(Error) <= 32);

Error::Error(std::error_code code, std::string_view op) noexcept
    : value_(code.value()),
      op_bytes_(static_cast<std::uint32_t>(op.size())),
      category_(&code.category()),
      op_(op.data()) {}

Error::Error(const Error& other) : Error(other.code(), other.op()) {
  if (other.subject_ != nullptr) subject_ = new std::string(*other.subject_);
}

Error::Error(Error&& other) noexcept : Error(other.code(), other.op()) {
  std::swap(subject_, other.subject_);
}

Error::~Error() { delete subject_; }

void Error::set_subject(std::string subject) {
  if (!subject.empty()) subject_ = new std::string(std::move(subject));
}

const std::string& Error::subject() const noexcept {
  static const NoSubject none;
  return subject_ == nullptr ? none.text : *subject_;
}

std::string Error::message() const {
  if (op_ == kWholeMessage) return subject();
  std::string text(op());
  if (!subject().empty()) text += (text.empty() ? "" : " ") + subject();
  return text + ": " + code().message();
}

}  // namespace tuza
