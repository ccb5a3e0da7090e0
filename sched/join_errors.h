// Public header, part of <tuza/tuza.h>.
//
// join_errors(): the failures of several attempts, as one.
//
//     std::vector<Result<Answer>> answers = ask_all(ctx, servers);
//     TUZA_TRY(join_errors(answers));        // "dial a:80: Connection refused; read b:80: deadline exceeded"
//
// Takes a range of Errors, or of Results, whose failures count, and keeps their order. Success if there is none; one
// alone stays as it is. The code of several is the one that they share, otherwise Errc::kOther: is() is true of the
// whole if it is true of each part.
#pragma once

#include <tuza/sched/result.h>

#include <expected>
#include <optional>
#include <ranges>
#include <string>
#include <system_error>
#include <type_traits>

namespace tuza {

namespace detail {

class JoinedErrors {
 public:
  void add(const Error& error);
  [[nodiscard]] Result<void> get() const;

 private:
  std::optional<Error> first_;
  std::error_code code_;  // of several
  std::string message_;   // of several; otherwise empty
};

}  // namespace detail

template <std::ranges::input_range Several>
[[nodiscard]] Result<void> join_errors(Several&& several) {
  detail::JoinedErrors joined;
  for (auto&& one : several) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(one)>, Error>) {
      joined.add(one);
    } else if (!one) {
      joined.add(one.error());
    }
  }
  return joined.get();
}

}  // namespace tuza
