// A folder as a page, or as JSON. Thread-safe; parks.
#pragma once

#include <cstddef>
#include <string>

namespace tuza::http {

class Request;
class ResponseWriter;

// An entry costs a system call; and all of them are in memory, to be sorted.
inline constexpr std::size_t kListedMax = 10'000;

// `path`: of a folder below the folder `root` (a descriptor): empty, or with a slash at its end. `dots`: with names that
// begin with a dot.
void send_listing(const Request& request, ResponseWriter& response, int root, const std::string& path,
                  bool dots);

}  // namespace tuza::http
