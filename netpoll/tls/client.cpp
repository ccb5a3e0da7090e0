#include <openssl/x509v3.h>
#include <tuza/netpoll/ip_address.h>
#include <tuza/netpoll/tls/context.h>
#include <tuza/netpoll/tls/stream.h>
#include <tuza/sched/detail/thread_mutex.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <utility>

namespace tuza::net {

// State shared by the connections of one client. Thread-safe.
class TlsClientState {
 public:
  static Result<std::unique_ptr<TlsClientState>> load(TlsClientOptions options);
  explicit TlsClientState(TlsClientOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const TlsClientOptions& options() const { return options_; }
  // An SSL object that requests `server_name` and verifies it.
  Result<tls::Owner<SSL>> make_ssl(const std::string& server_name);

 private:
  Result<void> read_files();
  static int keep_session(SSL* ssl, SSL_SESSION* session);
  tls::Owner<SSL_SESSION> take_session(const std::string& server_name);

  static constexpr std::size_t kSessionsMax = 256;

  const TlsClientOptions options_;
  std::string alpn_;  // wire format
  ThreadMutex mutex_;
  struct Session {
    tls::Owner<SSL_SESSION> session;
    std::uint64_t number;  // in order of arrival
  };
  std::map<std::string, Session> sessions_ TUZA_GUARDED_BY(mutex_);  // by server name
  std::uint64_t last_number_ TUZA_GUARDED_BY(mutex_) = 0;
  tls::Owner<SSL_CTX> context_;
};

namespace {

// The client's side of one connection.
class ClientSide final : public tls::Side {
 public:
  ClientSide(TlsClient& owner, TlsClientState& state, std::string server_name)
      : owner_(owner.shared_from_this()), state_(state), server_name_(std::move(server_name)) {}
  Result<Begun> begin() override {
    Result<tls::Owner<SSL>> ssl = state_.make_ssl(server_name_);
    if (!ssl) return std::unexpected(ssl.error());
    // keep_session() finds the name through this pointer.
    SSL_set_app_data(ssl->get(), this);
    return Begun{std::move(*ssl), owner_};
  }
  [[nodiscard]] bool is_server() const override { return false; }
  [[nodiscard]] std::chrono::milliseconds handshake_timeout() const override {
    return state_.options().handshake_timeout;
  }
  [[nodiscard]] std::string peer() const override { return server_name_; }

 private:
  const std::shared_ptr<TlsClient> owner_;
  TlsClientState& state_;
  const std::string server_name_;
};

}  // namespace

Result<std::unique_ptr<TlsClientState>> TlsClientState::load(TlsClientOptions options) {
  auto state = std::make_unique<TlsClientState>(std::move(options));
  if (Result<void> read = state->read_files(); !read) return std::unexpected(read.error());
  return state;
}

Result<void> TlsClientState::read_files() {
  Result<tls::Owner<SSL_CTX>> made = tls::make_context(TLS_client_method(), options_.min_version);
  if (!made) return std::unexpected(made.error());
  SSL_CTX* context = made->get();
  Result<std::string> alpn = tls::alpn_on_wire(options_.alpn);
  if (!alpn) return std::unexpected(alpn.error());
  alpn_ = std::move(*alpn);
  if (!options_.ca_file.empty()) {
    const Result<std::string> pem = tls::read_pem("load authorities", options_.ca_file);
    if (!pem) return std::unexpected(pem.error());
    if (Result<void> done = tls::trust(context, *pem, options_.ca_file, false); !done) return done;
  } else if (!options_.insecure_skip_verify) {
    if (Result<void> done = tls::trust_system(context); !done) return done;
  }
  if (!options_.certificate.cert_file.empty()) {
    if (Result<void> used = tls::use_certificate(context, options_.certificate); !used) return used;
  }
  SSL_CTX_set_verify(context, options_.insecure_skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_sess_set_new_cb(context, &TlsClientState::keep_session);
  context_ = std::move(*made);
  return {};
}

Result<tls::Owner<SSL>> TlsClientState::make_ssl(const std::string& server_name) {
  tls::clear_errors();
  tls::Owner<SSL> owner(SSL_new(context_.get()));
  const auto fail = [&] { return std::unexpected(Error(tls::take_error(), "tls handshake", server_name)); };
  if (owner == nullptr) return fail();
  SSL* ssl = owner.get();
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool named = IpAddress::parse(server_name)
                         ? X509_VERIFY_PARAM_set1_ip_asc(param, server_name.c_str()) == 1
                         : SSL_set1_host(ssl, server_name.c_str()) == 1 &&
                               SSL_set_tlsext_host_name(ssl, server_name.c_str()) == 1;
  if (!named) return fail();
  // Unlike the other functions, this one returns 0 on success.
  if (!alpn_.empty() && SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(alpn_.data()),
                                            static_cast<unsigned>(alpn_.size())) != 0) {
    return fail();
  }
  if (const tls::Owner<SSL_SESSION> session = take_session(server_name); session != nullptr) {
    SSL_set_session(ssl, session.get());
  }
  SSL_set_connect_state(ssl);
  return owner;
}

// TLS 1.3 tickets are for single use: an observer could link two connections that use the same ticket. TLS
// 1.2 sends tickets in the clear, and does not always send a new one: there a session is used until another
// one arrives.
tls::Owner<SSL_SESSION> TlsClientState::take_session(const std::string& server_name) {
  const LockGuard lock(mutex_);
  const auto found = sessions_.find(server_name);
  if (found == sessions_.end()) return nullptr;
  SSL_SESSION* session = found->second.session.get();
  SSL_SESSION_up_ref(session);
  tls::Owner<SSL_SESSION> taken(session);
  if (SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION) sessions_.erase(found);
  return taken;
}

// Called from within OpenSSL when a ticket has arrived. 1: we take ownership of the session.
int TlsClientState::keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* state = static_cast<TlsClientState*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const auto* side = static_cast<const ClientSide*>(SSL_get_app_data(ssl));
  tls::Owner<SSL_SESSION> owner(session);
  const LockGuard lock(state->mutex_);
  if (state->sessions_.size() >= kSessionsMax && !state->sessions_.contains(side->peer())) {
    const auto older = [](const auto& a, const auto& b) { return a.second.number < b.second.number; };
    state->sessions_.erase(std::min_element(state->sessions_.begin(), state->sessions_.end(), older));
  }
  state->sessions_.insert_or_assign(side->peer(), Session{std::move(owner), ++state->last_number_});
  return 1;
}

TlsClient::TlsClient(std::unique_ptr<TlsClientState> state) : state_(std::move(state)) {}
TlsClient::~TlsClient() = default;

Result<std::shared_ptr<TlsClient>> TlsClient::load(TlsClientOptions options) {
  tls::start_openssl();
  Result<std::unique_ptr<TlsClientState>> state = TlsClientState::load(std::move(options));
  if (!state) return std::unexpected(state.error());
  return std::make_shared<TlsClient>(std::move(*state));
}

Result<Conn> TlsClient::start(Conn conn, std::string_view server_name, const Context* ctx) {
  std::string name = server_name.empty() ? state_->options().server_name : std::string(server_name);
  // A trailing dot marks a complete name for the resolver; TLS and certificates omit the dot.
  if (name.ends_with('.')) name.pop_back();
  if (name.empty() || name.find('\0') != name.npos || conn.transport_ != nullptr) {
    return std::unexpected(Error::from_errno(EINVAL, "tls handshake", std::move(name)));
  }
  conn.transport_.reset(
      new tls::Stream(*conn.descriptor_, std::make_shared<ClientSide>(*this, *state_, std::move(name))));
  if (Result<void> shaken = conn.transport_->handshake(ctx); !shaken) return std::unexpected(shaken.error());
  return conn;
}

Result<Conn> TlsClient::start(Conn conn, std::string_view server_name) {
  return start(std::move(conn), server_name, nullptr);
}
Result<Conn> TlsClient::start(const Context& ctx, Conn conn, std::string_view server_name) {
  return start(std::move(conn), server_name, &ctx);
}

namespace {

// The host of "host:port": "[::1]:443" is "::1".
std::string_view host_of(std::string_view network, std::string_view address) {
  if (network == "unix") return {};
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Result<Conn> TlsClient::dial(std::string_view network, std::string_view address, TimePoint deadline) {
  Result<Conn> conn = net::dial(network, address, deadline);
  if (!conn) return conn;
  return start(std::move(*conn), state_->options().server_name.empty() ? host_of(network, address) : "");
}

Result<Conn> TlsClient::dial(const Context& ctx, std::string_view network, std::string_view address) {
  Result<Conn> conn = net::dial(ctx, network, address);
  if (!conn) return conn;
  return start(std::move(*conn), state_->options().server_name.empty() ? host_of(network, address) : "",
               &ctx);
}

}  // namespace tuza::net
