// State of a TlsServer: its certificates as last read, by name.
#pragma once

#include <tuza/netpoll/tls/context.h>
#include <tuza/netpoll/tls/stream.h>
#include <tuza/netpoll/tls/ticket_keys.h>
#include <tuza/sched/detail/thread_mutex.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace tuza::net {
namespace tls {

// The result of reading the files once. Immutable; connections whose handshake began with it keep it alive.
class Sites {
 public:
  static Result<std::shared_ptr<const Sites>> read(const TlsServerOptions& options,
                                                   std::shared_ptr<TicketKeys> keys);

  [[nodiscard]] SSL_CTX* first() const { return sites_.front().context.get(); }

 private:
  Result<void> add(const TlsServerOptions& options, const TlsCertificate& files,
                   const std::string& client_cas);
  [[nodiscard]] SSL_CTX* find(std::string name) const;
  static int choose_certificate(SSL* ssl, int* alert, void* self);
  static int choose_protocol(SSL* ssl, const unsigned char** chosen, unsigned char* length,
                             const unsigned char* offered, unsigned offered_length, void* self);

  std::shared_ptr<TicketKeys> ticket_keys_;
  struct Site {
    Owner<SSL_CTX> context;
    std::vector<std::string> names;  // sorted
    std::set<int> kinds;             // key types: one certificate for each
  };
  std::vector<Site> sites_;
  std::map<std::string, SSL_CTX*, std::less<>> by_name_;  // "*.example.org" is stored literally
  std::string alpn_;                                      // wire format
};

}  // namespace tls

// Thread-safe.
class TlsServerState final : public tls::Side {
 public:
  explicit TlsServerState(TlsServerOptions options) : options_(std::move(options)) {}
  Result<void> read_files();

  Result<Begun> begin() override;
  [[nodiscard]] bool is_server() const override { return true; }
  [[nodiscard]] std::chrono::milliseconds handshake_timeout() const override {
    return options_.handshake_timeout;
  }
  [[nodiscard]] std::string peer() const override { return {}; }
  [[nodiscard]] tls::TicketKeys& ticket_keys() { return *ticket_keys_; }  // valid once files have been read

 private:
  const TlsServerOptions options_;
  Mutex reading_;                                 // one reload at a time
  std::shared_ptr<tls::TicketKeys> ticket_keys_;  // set by the first read, then constant
  ThreadMutex mutex_;
  std::shared_ptr<const tls::Sites> sites_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace tuza::net
