#include <tuza/netpoll/tls/server.h>

#include <openssl/evp.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/tls/transport.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace tuza::net {
namespace tls {
namespace {

// A session certifies that its client was authenticated: it is valid only where the same clients would be
// accepted.
using SessionContext = std::array<unsigned char, 32>;
SessionContext session_context(const TlsServerOptions& options, const std::string& client_cas) {
  SessionContext digest{};
  const std::string text = std::to_string(static_cast<int>(options.client_auth)) + client_cas;
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

int kind_of_key(SSL_CTX* context) {
  return EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_CTX_get0_certificate(context)));
}

}  // namespace

Result<std::shared_ptr<const Sites>> Sites::read(const TlsServerOptions& options,
                                                 std::shared_ptr<TicketKeys> keys) {
  auto sites = std::make_shared<Sites>();
  sites->ticket_keys_ = std::move(keys);
  if (options.certificates.empty()) {
    return std::unexpected(Error::from_errno(EINVAL, "load certificate", "(none given)"));
  }
  Result<std::string> alpn = alpn_on_wire(options.alpn);
  if (!alpn) return std::unexpected(alpn.error());
  sites->alpn_ = std::move(*alpn);
  std::string client_cas;
  if (options.client_auth != ClientAuth::kNone) {
    Result<std::string> pem = read_pem("load authorities", options.client_ca_file);
    if (!pem) return std::unexpected(pem.error());
    client_cas = std::move(*pem);
  }
  for (const TlsCertificate& files : options.certificates) {
    if (Result<void> added = sites->add(options, files, client_cas); !added) {
      return std::unexpected(added.error());
    }
  }
  return sites;
}

Result<void> Sites::add(const TlsServerOptions& options, const TlsCertificate& files,
                        const std::string& client_cas) {
  Result<Owner<SSL_CTX>> made = make_context(TLS_server_method(), options.min_version);
  if (!made) return std::unexpected(made.error());
  SSL_CTX* context = made->get();
  if (Result<void> used = use_certificate(context, files); !used) return used;
  std::vector<std::string> names = names_of(context);
  std::sort(names.begin(), names.end());
  // Same names, other key type: OpenSSL selects the certificate that the client supports.
  const int kind = kind_of_key(context);
  for (Site& other : sites_) {
    if (other.names != names || !other.kinds.insert(kind).second) continue;
    return use_certificate(other.context.get(), files);
  }
  if (options.client_auth != ClientAuth::kNone) {
    if (Result<void> done = trust(context, client_cas, options.client_ca_file, true); !done) return done;
    const bool required = options.client_auth == ClientAuth::kRequire;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nullptr);
  }
  // Sessions are stored by the clients, in tickets; the server stores none. One ticket per handshake instead
  // of OpenSSL's two: each costs 10 us of a handshake, and a returning client gets a new one.
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  const SessionContext id = session_context(options, client_cas);
  SSL_CTX_set_session_id_context(context, id.data(), id.size());
  ticket_keys_->use_for(context);
  SSL_CTX_set_tlsext_servername_callback(context, &Sites::choose_certificate);
  SSL_CTX_set_tlsext_servername_arg(context, this);
  if (!alpn_.empty()) SSL_CTX_set_alpn_select_cb(context, &Sites::choose_protocol, this);
  for (const std::string& name : names) by_name_.try_emplace(name, context);
  sites_.push_back({std::move(*made), std::move(names), {kind}});
  return {};
}

SSL_CTX* Sites::find(std::string name) const {
  to_lower(name);
  if (name.ends_with('.')) name.pop_back();  // RFC 6066 forbids the dot, but some clients send it
  if (const auto exact = by_name_.find(name); exact != by_name_.end()) return exact->second;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return first();
  // Not "*" + name.substr(dot): GCC 12 gives a false warning for it with -O3.
  const auto wildcard = by_name_.find(name.replace(0, dot, 1, '*'));
  return wildcard != by_name_.end() ? wildcard->second : first();
}

int Sites::choose_certificate(SSL* ssl, int*, void* self) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  SSL_CTX* context = static_cast<const Sites*>(self)->find(name);
  if (context != SSL_get_SSL_CTX(ssl)) SSL_set_SSL_CTX(ssl, context);
  return SSL_TLSEXT_ERR_OK;
}

int Sites::choose_protocol(SSL*, const unsigned char** chosen, unsigned char* length,
                           const unsigned char* offered, unsigned offered_length, void* self) {
  const std::string& ours = static_cast<const Sites*>(self)->alpn_;
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, length, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned>(ours.size()), offered, offered_length);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace tls

Result<void> TlsServerState::read_files() {
  const LockGuard lock(reading_);
  if (ticket_keys_ == nullptr) {
    Result<std::shared_ptr<tls::TicketKeys>> made = tls::TicketKeys::make();
    if (!made) return std::unexpected(made.error());
    ticket_keys_ = std::move(*made);
  }
  Result<std::shared_ptr<const tls::Sites>> sites = tls::Sites::read(options_, ticket_keys_);
  if (!sites) return std::unexpected(sites.error());
  const LockGuard swap_lock(mutex_);
  sites_.swap(*sites);
  return {};
}

Result<tls::Side::Begun> TlsServerState::begin() {
  std::shared_ptr<const tls::Sites> sites;
  {
    const LockGuard lock(mutex_);
    sites = sites_;
  }
  tls::clear_errors();
  Begun begun{tls::Owner<SSL>(SSL_new(sites->first())), sites};
  if (begun.ssl == nullptr) return std::unexpected(Error(tls::take_error(), "tls handshake"));
  SSL_set_accept_state(begun.ssl.get());
  return begun;
}

TlsServer::TlsServer(std::unique_ptr<TlsServerState> state) : state_(std::move(state)) {}
TlsServer::~TlsServer() = default;

Result<std::shared_ptr<TlsServer>> TlsServer::load(TlsServerOptions options) {
  tls::start_openssl();
  auto state = std::make_unique<TlsServerState>(std::move(options));
  if (Result<void> read = state->read_files(); !read) return std::unexpected(read.error());
  return std::make_shared<TlsServer>(std::move(state));
}

Result<void> TlsServer::reload() { return state_->read_files(); }

detail::TransportOwner tls::make_server_transport(Descriptor& descriptor,
                                                  const std::shared_ptr<TlsServer>& server) {
  return detail::TransportOwner(new (std::nothrow)
                                    Stream(descriptor, std::shared_ptr<Side>(server, &server->state())));
}

}  // namespace tuza::net
