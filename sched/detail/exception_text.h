// What an exception says, for logs and reports.
#pragma once

#include <tuza/sched/result.h>

#include <exception>
#include <expected>
#include <string>

namespace tuza::detail {

// what(); for Result<T>::value() of a failed call, which says only that there is no value, the Error's message. Allocates.
inline std::string exception_text(const std::exception& exception) {
  const auto* failed = dynamic_cast<const std::bad_expected_access<Error>*>(&exception);
  return failed != nullptr ? failed->error().message() : exception.what();
}

}  // namespace tuza::detail
