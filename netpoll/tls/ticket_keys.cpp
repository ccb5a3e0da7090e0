#include <tuza/netpoll/tls/ticket_keys.h>

#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::net::tls {
namespace {

// RFC 1035 2.3.4 has 255; OpenSSL accepts no longer ones.
constexpr std::size_t kServerNameBytesMax = TLSEXT_MAXLEN_host_name;

bool set_mac_key(EVP_MAC_CTX* mac, std::span<unsigned char> key) {
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 3> params{
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0), OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, params.data()) == 1;
}

// The following functions run inside OpenSSL. A ticket contains the time of the original full handshake, and the server
// name that the client sent with it.
using FirstTime = std::int64_t;

int describe_origin(SSL* ssl, void*) {
  SSL_SESSION* session = SSL_get_session(ssl);
  void* known = nullptr;
  std::size_t size = 0;
  if (SSL_SESSION_get0_ticket_appdata(session, &known, &size) == 1 && size != 0) return 1;  // resumed
  const FirstTime first = std::time(nullptr);
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const std::string_view text = name == nullptr ? std::string_view() : name;
  std::array<char, sizeof first + kServerNameBytesMax> origin;
  if (text.size() > kServerNameBytesMax) return 0;
  std::memcpy(origin.data(), &first, sizeof first);
  std::copy(text.begin(), text.end(), origin.begin() + sizeof first);
  return SSL_SESSION_set1_ticket_appdata(session, origin.data(), sizeof first + text.size());
}

// The server name of the handshake in progress: when a ticket is judged, OpenSSL has not looked at that extension yet.
// Layout: RFC 6066 3.
std::string_view server_name_of_hello(SSL* ssl) {
  const unsigned char* bytes = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &size) != 1) return {};
  constexpr std::size_t kHead = 5;  // length of the list, type, length of the name
  if (size < kHead || bytes[2] != TLSEXT_NAMETYPE_host_name) return {};
  const std::size_t length = static_cast<std::size_t>(bytes[3]) << 8 | bytes[4];
  if (length > size - kHead) return {};
  return {reinterpret_cast<const char*>(bytes + kHead), length};
}

// RFC 6066 3: a session is not resumed under another server name. OpenSSL checks that in TLS 1.3 only.
bool is_of_this_origin(SSL* ssl, SSL_SESSION* session) {
  void* data = nullptr;
  std::size_t size = 0;
  FirstTime first = 0;
  if (SSL_SESSION_get0_ticket_appdata(session, &data, &size) != 1 || size < sizeof first) return false;
  std::memcpy(&first, data, sizeof first);
  const std::string_view name(static_cast<const char*>(data) + sizeof first, size - sizeof first);
  return std::time(nullptr) - first <= SSL_CTX_get_timeout(SSL_get_SSL_CTX(ssl)) &&
         name == server_name_of_hello(ssl);
}

bool has_expired_peer(SSL_SESSION* session) {
  const X509* peer = SSL_SESSION_get0_peer(session);
  return peer != nullptr && X509_cmp_current_time(X509_get0_notAfter(peer)) <= 0;
}

// Called after an attempt to open a ticket. If the ticket is rejected, a full handshake follows, which ends
// with another ticket.
SSL_TICKET_RETURN judge_ticket(SSL* ssl, SSL_SESSION* session, const unsigned char*, std::size_t,
                               SSL_TICKET_STATUS status, void*) {
  const bool opened = status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW;
  if (!opened || !is_of_this_origin(ssl, session) || has_expired_peer(session))
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

}  // namespace

std::optional<TicketKeys::Key> TicketKeys::make_key(Clock::time_point now) {
  Key key{};
  key.made = now;
  const auto fill = [](auto& bytes) { return RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1; };
  if (fill(key.name) && fill(key.cipher) && fill(key.mac)) return key;
  return std::nullopt;
}

Result<std::shared_ptr<TicketKeys>> TicketKeys::make() {
  clear_errors();
  const std::optional<Key> first = make_key(Clock::now());
  if (!first) return std::unexpected(Error(take_error(), "tls ticket keys"));
  auto keys = std::make_shared<TicketKeys>();
  {
    const LockGuard lock(keys->mutex_);
    keys->current_ = *first;
  }
  return keys;
}

void TicketKeys::use_for(SSL_CTX* context) {
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &TicketKeys::on_ticket);
  SSL_CTX_set_session_ticket_cb(context, &describe_origin, &judge_ticket, nullptr);
}

bool TicketKeys::renew(Clock::time_point now) {
  const LockGuard lock(mutex_);
  if (previous_ && now - previous_->made >= 2 * kLife) previous_.reset();
  if (now - current_.made < kLife) return false;
  const std::optional<Key> fresh = make_key(now);
  if (!fresh) return false;  // the old key is better than none
  previous_.reset();
  if (now - current_.made < 2 * kLife) previous_ = current_;
  current_ = *fresh;
  return true;
}

// Runs inside OpenSSL. 1: success; 2: success, and the client gets a new ticket; 0: the ticket is not ours;
// -1: failure.
int TicketKeys::on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                          EVP_MAC_CTX* mac, int encrypts) {
  auto* keys = static_cast<TicketKeys*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  keys->renew(Clock::now());
  if (encrypts != 0) return keys->encrypt(name, iv, cipher, mac);
  const int found = keys->decrypt(name, iv, cipher, mac);
  // TLS 1.3 tickets are for single use.
  return found == 1 && SSL_version(ssl) >= TLS1_3_VERSION ? 2 : found;
}

int TicketKeys::encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac) {
  Key key;
  {
    const LockGuard lock(mutex_);
    key = current_;
  }
  const EVP_CIPHER* aes = EVP_aes_256_cbc();
  std::copy(key.name.begin(), key.name.end(), name);
  const bool good = RAND_bytes(iv, EVP_CIPHER_get_iv_length(aes)) == 1 &&
                    EVP_EncryptInit_ex2(cipher, aes, key.cipher.data(), iv, nullptr) == 1 &&
                    set_mac_key(mac, key.mac);
  return good ? 1 : -1;
}

int TicketKeys::decrypt(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher,
                        EVP_MAC_CTX* mac) {
  Key key;
  bool is_current = false;
  {
    const LockGuard lock(mutex_);
    const auto named = [name](const Key& k) { return std::equal(k.name.begin(), k.name.end(), name); };
    is_current = named(current_);
    if (!is_current && !(previous_ && named(*previous_))) return 0;
    key = is_current ? current_ : *previous_;
  }
  const bool good = EVP_DecryptInit_ex2(cipher, EVP_aes_256_cbc(), key.cipher.data(), iv, nullptr) == 1 &&
                    set_mac_key(mac, key.mac);
  if (!good) return -1;
  return is_current ? 1 : 2;
}

}  // namespace tuza::net::tls
