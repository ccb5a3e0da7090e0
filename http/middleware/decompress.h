// Public header, part of <tuza/http.h>.
//
// Decodes request bodies: the handler reads what the client has compressed with gzip, br or zstd.
//
//     router.use(tuza::http::decompress({.bytes_max = 1 << 20}));
//
// The handler sees neither Content-Encoding nor Content-Length. The server's limits hold for the compressed body. What is
// decoded is limited, too, against bodies that are small on the wire only: reading beyond `bytes_max`, or beyond
// `ratio_max` times the compressed bytes, fails, and the answer is 413 if the handler has not begun one. A malformed or
// truncated body gets 400, an unknown coding, or several, 415 with the known ones in Accept-Encoding. A decoder takes up
// to 8 MiB (zstd), 16 MiB (br) or 44 KiB (gzip) while it runs, as the client's window demands.
//
// A request without Content-Encoding costs the search for that field.
#pragma once

#include <tuza/http/middleware.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tuza::http {

struct DecompressOptions {
  std::size_t bytes_max = 8 << 20;  // of the decoded body
  std::size_t ratio_max = 200;      // decoded to compressed bytes; the first MiB is free
  std::vector<std::string> codings{"gzip", "br", "zstd"};  // others get 415
};

// Throws std::invalid_argument for an unknown coding, or a ratio_max of 0.
[[nodiscard]] Middleware decompress(const DecompressOptions& options = {});

}  // namespace tuza::http
