#include <tuza/http/websocket/mask_keys.h>

#include <openssl/rand.h>

namespace tuza::http::websocket {

bool MaskKeys::fill() {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(keys_.data()), static_cast<int>(sizeof keys_)) != 1)
    return false;
  left_ = keys_.size();
  return true;
}

}  // namespace tuza::http::websocket
