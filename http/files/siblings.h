// Precompressed files: app.js.br beside app.js. Thread-safe; parks.
#pragma once

#include <tuza/http/files/file_store.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

class Request;

// Throws std::invalid_argument for a coding that is unknown or named twice.
void check_codings(const std::vector<std::string>& codings);

struct Sibling {
  std::string_view coding;  // one of the offered ones
  FoundFile file;
};

// The file beside `path` that the client prefers to the file itself, `original`; nullopt if there is none. An older one
// does not count: it would bring content back that has been replaced.
std::optional<Sibling> find_sibling(const Request& request, FileStore& store, const std::string& path,
                                    const FoundFile& original, const std::vector<std::string>& offered);

}  // namespace tuza::http
