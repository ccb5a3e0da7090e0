#include <tuza/sched/errorf.h>

#include <array>
#include <charconv>
#include <utility>

namespace tuza::detail {
namespace {

template <class Number>
std::string text_of(Number number) {
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), end};
}

}  // namespace

std::string error_text(long long number) { return text_of(number); }
std::string error_text(unsigned long long number) { return text_of(number); }
std::string error_text(double number) { return text_of(number); }

Error make_text_error(std::string_view text, std::span<const std::string> arguments,
                      std::span<const std::error_code> codes) {
  std::string message;
  auto argument = arguments.begin();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' && text[i + 1] == '}') {
      message += *argument++;
      ++i;
    } else {
      message += c;
      if (c == '{' || c == '}') ++i;
    }
  }
  std::error_code code = make_error_code(Errc::kOther);
  for (const std::error_code& given : codes) {
    if (given) {
      code = given;
      break;
    }
  }
  return Error::from_text(code, std::move(message));
}

}  // namespace tuza::detail
