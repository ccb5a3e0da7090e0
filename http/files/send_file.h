// Sends a file in answer to a request: conditions, ranges, the bytes. Thread-safe; parks.
#pragma once

#include <tuza/http/files/open_beneath.h>

#include <string_view>

struct stat;

namespace tuza::http {

class Request;
class ResponseWriter;

// For GET or HEAD of `file`, a regular file with metadata `info`. `cache_control`: value of that header;
// empty: no header. A refusal (412, 416) carries neither that header nor the validators: it does not
// represent the file.
void send_file(Request& request, ResponseWriter& response, const OpenFile& file, const struct stat& info,
               std::string_view content_type, std::string_view cache_control);

}  // namespace tuza::http
