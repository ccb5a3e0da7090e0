#include <tuza/sched/result.h>

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

}  // namespace

const std::error_category& error_category() {
  static const Category category;
  return category;
}

std::string Error::message() const {
  if (op_.data() == kWholeMessage) return subject_;
  std::string text(op_);
  if (!subject_.empty()) text += (text.empty() ? "" : " ") + subject_;
  return text + ": " + code_.message();
}

}  // namespace tuza
