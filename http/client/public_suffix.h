// Which names belong to nobody: "com", "co.uk", "github.io" (https://publicsuffix.org). By libpsl.
#pragma once

#include <string>

namespace tuza::http {

// `domain` in lower case, names of other scripts in punycode; with or without a final dot. A single unknown label is one.
// Thread-safe; reads a file the first time.
[[nodiscard]] bool is_public_suffix(std::string domain);
// False where Tuza was built without libpsl: then every name may be one, and is_public_suffix() is true.
[[nodiscard]] bool knows_public_suffixes();

}  // namespace tuza::http
