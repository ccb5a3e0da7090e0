#include <tuza/http/wire/digest.h>

#include <openssl/evp.h>

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

namespace tuza::http {
namespace {

const EVP_MD& look_up(const char* name) {
  const EVP_MD* const found = EVP_MD_fetch(nullptr, name, nullptr);
  if (found == nullptr) throw std::runtime_error("OpenSSL has no " + std::string(name));
  return *found;
}

template <std::size_t kBytes>
std::array<unsigned char, kBytes> digest_of(std::string_view text, const EVP_MD& algorithm) {
  std::array<unsigned char, kBytes> digest;
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, &algorithm, nullptr) != 1)
    throw std::bad_alloc();
  return digest;
}

}  // namespace

Sha1Digest sha1_of(std::string_view text) {
  static const EVP_MD& algorithm = look_up("SHA1");
  return digest_of<std::tuple_size_v<Sha1Digest>>(text, algorithm);
}

Sha256Digest sha256_of(std::string_view text) {
  static const EVP_MD& algorithm = look_up("SHA256");
  return digest_of<std::tuple_size_v<Sha256Digest>>(text, algorithm);
}

}  // namespace tuza::http
