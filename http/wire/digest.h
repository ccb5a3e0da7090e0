// Digests of texts (FIPS 180-4), by OpenSSL.
//
// Its SHA1() and SHA256() look the algorithm up for each text, which takes longer than the digest of a short one, and deeper
// frames than anything else that a handler does: a connection that waits for hours would keep the memory. Here it is looked up
// once.
//
// Throw std::bad_alloc, and std::runtime_error if OpenSSL has no such algorithm. Thread-safe. Do not park.
#pragma once

#include <array>
#include <string_view>

namespace tuza::http {

using Sha1Digest = std::array<unsigned char, 20>;
using Sha256Digest = std::array<unsigned char, 32>;

[[nodiscard]] Sha1Digest sha1_of(std::string_view text);
[[nodiscard]] Sha256Digest sha256_of(std::string_view text);

}  // namespace tuza::http
