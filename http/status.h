// Public header, part of <tuza/http.h>.
//
// Status codes and their reason phrases, and errors that are a status.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/result.h>

#include <optional>
#include <string_view>
#include <system_error>

namespace tuza::http {

// "Not Found" for 404; "Unknown" for unregistered codes.
std::string_view reason_phrase(int status);

// The code of an Error whose cause is the status of a response, as that of websocket::dial(): "403 Forbidden".
[[nodiscard]] std::error_code status_code(int status);
// The status of such an Error, or of one that errorf() has made of it; nullopt: it has another cause.
[[nodiscard]] std::optional<int> status_of(const Error& error);

}  // namespace tuza::http
