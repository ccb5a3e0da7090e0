// The answers to files that cannot be sent. Thread-safe.
#pragma once

#include <string_view>

namespace tuza::http {

class ResponseWriter;

// `error`: -errno of the call that failed. 403, 404, 503 or 500; the last two are logged with the path.
void refuse_file(ResponseWriter& response, long error, std::string_view path);

}  // namespace tuza::http
