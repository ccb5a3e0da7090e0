// The keys that encrypt session tickets.
//
// A TLS 1.2 ticket contains the secrets of its connections: anyone who obtains the key can decrypt recordings
// of them. A key is therefore used for 12 hours. For another 12 hours it still opens tickets, and a client
// that presents such a ticket gets a new one; then the key is forgotten.
//
// A ticket is good for the server name only under which it was issued.
//
// Each TLS 1.3 resumption issues another ticket. All tickets that derive from one full handshake expire
// together, when a single ticket would expire (OpenSSL: two hours), or when the client's certificate expires.
// Then a full handshake is required again, in which the client is asked for its certificate.
//
// Shared by all contexts of a TlsServer, across reloads. Thread-safe.
#pragma once

#include <openssl/core_names.h>
#include <tuza/netpoll/tls/openssl.h>
#include <tuza/sched/detail/thread_mutex.h>
#include <tuza/sched/result.h>

#include <array>
#include <chrono>
#include <memory>
#include <optional>

namespace tuza::net::tls {

class TicketKeys {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours kLife{12};

  // An error if no random numbers are available.
  static Result<std::shared_ptr<TicketKeys>> make();

  // Encrypts the tickets of `context` with these keys, which must outlive `context`. Uses the app data of
  // `context`.
  void use_for(SSL_CTX* context);

  // Called for each ticket: replaces the current key if its life has ended at `now`. True: there is a new
  // key.
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

  ThreadMutex mutex_;
  Key current_ TUZA_GUARDED_BY(mutex_){};
  std::optional<Key> previous_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace tuza::net::tls
