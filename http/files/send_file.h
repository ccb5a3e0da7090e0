// Answers a request with a file: conditions, ranges, the bytes. Thread-safe; parks.
#pragma once

#include <tuza/http/files/file_content.h>

namespace tuza::http {

class Request;
class ResponseWriter;

// For GET or HEAD. A refusal (412, 416) carries neither Cache-Control nor the validators: it does not represent the file.
void send_file(const Request& request, ResponseWriter& response, const Representation& representation,
               const FileContent& content);

// The whole file with the status that has been set, whatever the request: for pages of errors, or POST.
void send_whole_file(ResponseWriter& response, const Representation& representation,
                     const FileContent& content);

// Whether the request has a field that makes the answer differ from the whole file: a condition or a range.
[[nodiscard]] bool asks_for_more_than_the_file(const Request& request);

}  // namespace tuza::http
