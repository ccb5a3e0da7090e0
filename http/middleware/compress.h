// Public header, part of <tuza/http.h>.
//
// Compresses responses with gzip, br or zstd, as the client accepts them (Accept-Encoding, with weights).
//
//     app.use(tuza::http::compress());
//     app.use(tuza::http::compress({.codings = {"gzip"}, .bytes_min = 4096}));
//
// A response is compressed if its type is in the list and its size is not known to be small. It stays as it is if it has
// a Content-Encoding, Content-Range, Content-Digest or Repr-Digest, or "Cache-Control: no-transform"; and so do those
// with the statuses 204, 205, 206 and 304. A response that is held back (up to 16 KiB) is also sent as it is if
// compression saves too little; a larger or flushed one is compressed while it is written, piece by piece, with flush()
// as before. An ETag becomes weak, Content-Length is the compressed one or is left out, Accept-Ranges is left out, and
// every response that might have been compressed gets "Vary: Accept-Encoding".
//
// Memory: a streamed response has one encoder (256 KiB for gzip, up to 1 MiB for br and zstd, whatever the response's
// size) and 16 KiB of output from its first piece to its end; encoders are kept for later responses, at most `encoders_kept`
// of each coding.
//
// Install it inside the access log, which then counts compressed bytes, and outside etag(). Do not compress pages that
// repeat what a request contains next to a secret: their length tells the secret (BREACH).
#pragma once

#include <tuza/http/middleware.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tuza::http {

struct CompressOptions {
  // In the order of preference, for codings of the same weight. Those whose library is not part of the build are left out.
  std::vector<std::string> codings{"zstd", "br", "gzip"};
  // "text/html", "text/*", "+json" (a suffix).
  std::vector<std::string> types{"text/*",
                                 "application/json",
                                 "application/javascript",
                                 "application/xml",
                                 "application/wasm",
                                 "application/x-ndjson",
                                 "application/manifest+json",
                                 "image/svg+xml",
                                 "+json",
                                 "+xml"};
  std::size_t bytes_min = 1024;  // a body that is known to be smaller is not compressed
  int percent_max = 95;          // of its size: a held-back response that stays larger is sent as it is
  // Of the libraries; 0: fast ones (gzip 6, br 4, zstd 3).
  int gzip_level = 0, br_level = 0, zstd_level = 0;
  std::size_t encoders_kept = 32;
};

// Throws std::invalid_argument for an unknown coding, a level that its library does not have, or percent_max outside of 1 to
// 100.
[[nodiscard]] Middleware compress(CompressOptions options = {});

}  // namespace tuza::http
