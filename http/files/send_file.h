// The answer that a file gives to a request: conditions, ranges, the bytes. Thread-safe; parks.
#pragma once

#include <tuza/http/files/open_beneath.h>

#include <string_view>

struct stat;

namespace tuza::http {

class Request;
class ResponseWriter;

// For GET or HEAD of `file`, a regular one, which is `info`. `cache_control`: that header's value; empty:
// none. A refusal (412, 416) has neither that nor the validators: it is not the file.
void send_file(Request& request, ResponseWriter& response, const OpenFile& file, const struct stat& info,
               std::string_view content_type, std::string_view cache_control);

}  // namespace tuza::http
