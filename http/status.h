// Public header, part of <tuza/http.h>.
//
// Status codes and their reason phrases.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <string_view>

namespace tuza::http {

// "Not Found" for 404; "Unknown" for unregistered codes.
std::string_view reason_phrase(int status);

}  // namespace tuza::http
