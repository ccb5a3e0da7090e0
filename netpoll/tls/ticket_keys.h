// The keys that session tickets are encrypted with.
//
// A ticket of TLS 1.2 has the secrets of its connections in it: who gets hold of the key can read what was
// recorded of them. So a key serves for 12 hours. The one before it still opens tickets for as long, and who
// comes with one of these gets a new one; then it is forgotten.
//
// Each resumption with TLS 1.3 brings another ticket. All that come from one full handshake are good for as
// long as one of them would be (OpenSSL: two hours), and while the client's certificate is: then it is a full
// handshake again, where the client is asked for it.
//
// Shared by all contexts of a TlsServer, across reloads. Thread-safe.
#pragma once

#include <openssl/core_names.h>
#include <tuza/netpoll/tls/openssl.h>
#include <tuza/sched/result.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

namespace tuza::net::tls {

class TicketKeys {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours kLife{12};

  // An error if there is no randomness.
  static Result<std::shared_ptr<TicketKeys>> make();

  // The tickets of `context` are encrypted with these, which must outlive it. Takes its app data.
  void use_for(SSL_CTX* context);

  // Called for each ticket: a new key, if the one in use has served its time at `now`. True: there is one.
  bool renew(Clock::time_point now);

 private:
  struct Key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher;
    std::array<unsigned char, 32> mac;
    Clock::time_point made;
  };
  static std::optional<Key> make_key(Clock::time_point now);
  static int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                       EVP_MAC_CTX* mac, int encrypts);
  int encrypt(unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac);
  int decrypt(const unsigned char* name, const unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac);

  std::mutex mutex_;
  Key current_{};                // guarded by mutex_
  std::optional<Key> previous_;  // guarded by mutex_
};

}  // namespace tuza::net::tls
