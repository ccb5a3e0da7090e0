#include <tuza/netpoll/tls/context.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <tuza/netpoll/file.h>
#include <tuza/sched/blocking.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>

namespace tuza::net::tls {
namespace {

// https://wiki.mozilla.org/Security/Server_Side_TLS, "intermediate" 5.7, without DHE: DHE costs the server
// most, and every client that supports DHE also supports ECDHE.
constexpr const char* kCiphers12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
constexpr const char* kCiphers13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:prime256v1:secp384r1";

std::unexpected<Error> fail(std::string_view op, const std::string& subject) {
  return std::unexpected(Error(take_error(), op, subject));
}

Owner<BIO> reader_of(const std::string& text) {
  return Owner<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// There is no terminal at which a passphrase could be requested.
int no_passphrase(char*, int, int, void*) { return -1; }

// All certificates, the first with PEM's auxiliary data. Empty on an error, which is then in the queue.
std::vector<Owner<X509>> certificates_in(const std::string& pem) {
  clear_errors();
  std::vector<Owner<X509>> all;
  const Owner<BIO> bio = reader_of(pem);
  while (X509* next = all.empty() ? PEM_read_bio_X509_AUX(bio.get(), nullptr, no_passphrase, nullptr)
                                  : PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    all.emplace_back(next);
  }
  return all;
}

std::error_code no_start_line() {
  return {static_cast<int>(ERR_PACK(ERR_LIB_PEM, 0, PEM_R_NO_START_LINE)), error_category()};
}

std::error_code passphrase_required() {
  return {static_cast<int>(ERR_PACK(ERR_LIB_PEM, 0, PEM_R_BAD_PASSWORD_READ)), error_category()};
}

// The loop above always ends with an error. The end is good if the error is that no further certificate
// begins; otherwise the queue is left as it is.
bool ended_well() {
  if (ERR_GET_REASON(ERR_peek_error()) != PEM_R_NO_START_LINE) return false;
  clear_errors();
  return true;
}

}  // namespace

Result<Owner<SSL_CTX>> make_context(const SSL_METHOD* method, TlsVersion min_version) {
  clear_errors();
  Owner<SSL_CTX> context(SSL_CTX_new(method));
  if (context == nullptr) return fail("tls context", "");
  SSL_CTX* c = context.get();
  const int version = min_version == TlsVersion::k1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
  const bool set = SSL_CTX_set_min_proto_version(c, version) == 1 &&
                   SSL_CTX_set_cipher_list(c, kCiphers12) == 1 &&
                   SSL_CTX_set_ciphersuites(c, kCiphers13) == 1 && SSL_CTX_set1_groups_list(c, kGroups) == 1;
  if (!set) return fail("tls context", "");
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // Idle connections return their buffers. A write that had to wait may be retried from another address.
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

Result<std::string> read_pem(std::string_view op, const std::string& file) {
  Result<File> opened = File::open(file);
  Result<std::string> text = opened ? opened->read_all() : std::unexpected(opened.error());
  if (!text) return std::unexpected(Error(text.error().code(), op, file));
  return text;
}

Result<void> use_certificate(SSL_CTX* context, const TlsCertificate& files) {
  constexpr std::string_view kCertificate = "load certificate", kKey = "load key";
  const Result<std::string> chain = read_pem(kCertificate, files.cert_file);
  if (!chain) return std::unexpected(chain.error());
  if (files.key_file.empty())
    return std::unexpected(Error::from_errno(EINVAL, kKey, "(none given) for " + files.cert_file));
  const Result<std::string> secret = read_pem(kKey, files.key_file);
  if (!secret) return std::unexpected(secret.error());
  std::vector<Owner<X509>> certificates = certificates_in(*chain);
  if (certificates.empty() || !ended_well()) return fail(kCertificate, files.cert_file);
  // OpenSSL's key reader tries all formats it knows, and would report "unsupported".
  if (secret->find("PRIVATE KEY-----") == std::string::npos) {
    return std::unexpected(Error(no_start_line(), kKey, files.key_file));
  }
  const Owner<BIO> bio = reader_of(*secret);
  const Owner<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  // OpenSSL reports the callback's refusal in one way or another.
  if (key == nullptr && secret->contains("ENCRYPTED")) {
    clear_errors();
    return std::unexpected(Error(passphrase_required(), kKey, files.key_file));
  }
  if (key == nullptr) return fail(kKey, files.key_file);
  if (X509_check_private_key(certificates.front().get(), key.get()) != 1) {
    return fail(kKey, files.key_file + " for " + files.cert_file);
  }
  if (SSL_CTX_use_certificate(context, certificates.front().get()) != 1)
    return fail(kCertificate, files.cert_file);
  for (std::size_t i = 1; i < certificates.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, certificates[i].get()) != 1)
      return fail(kCertificate, files.cert_file);
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) return fail(kKey, files.key_file);
  return {};
}

Result<void> trust(SSL_CTX* context, const std::string& pem, const std::string& file, bool announce) {
  const std::vector<Owner<X509>> certificates = certificates_in(pem);
  if (certificates.empty() || !ended_well()) return fail("load authorities", file);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  for (const Owner<X509>& certificate : certificates) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return fail("load authorities", file);
    if (announce && SSL_CTX_add_client_CA(context, certificate.get()) != 1)
      return fail("load authorities", file);
  }
  return {};
}

Result<void> trust_system(SSL_CTX* context) {
  // The error is in the queue of the calling thread, so it is read before the call may park.
  const std::error_code error = blocking(CallLength::kLong, [context]() -> std::error_code {
    clear_errors();
    const bool read = SSL_CTX_set_default_verify_paths(context) == 1;
    return read ? (clear_errors(), std::error_code{}) : take_error();
  });
  if (error) return std::unexpected(Error(error, "load authorities", "of the system"));
  return {};
}

Result<std::string> alpn_on_wire(const std::vector<std::string>& names) {
  std::string wire;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 255) {
      return std::unexpected(Error::from_errno(EINVAL, "tls alpn", "\"" + name + "\""));
    }
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

void to_lower(std::string& text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

std::vector<std::string> names_of(SSL_CTX* context) {
  std::vector<std::string> names;
  const X509* certificate = SSL_CTX_get0_certificate(context);
  auto* all =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type != GEN_DNS) continue;
    const auto* text = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    std::string dns(text, static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    to_lower(dns);
    names.push_back(std::move(dns));
  }
  GENERAL_NAMES_free(all);
  clear_errors();
  return names;
}

}  // namespace tuza::net::tls

namespace tuza::net {
namespace {

std::optional<std::chrono::system_clock::time_point> time_of(const ASN1_TIME* time) {
  struct tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  // Certificates may name years, such as 9999, that the clock cannot represent.
  using Clock = std::chrono::system_clock;
  constexpr auto kFirst = std::chrono::ceil<std::chrono::seconds>(Clock::time_point::min());
  constexpr auto kLast = std::chrono::floor<std::chrono::seconds>(Clock::time_point::max());
  const std::chrono::sys_seconds when{std::chrono::seconds(timegm(&parts))};
  return Clock::time_point(std::clamp(when, kFirst, kLast));
}

}  // namespace

Result<TlsValidity> tls_validity(const std::string& cert_file) {
  constexpr std::string_view kOp = "load certificate";
  tls::start_openssl();
  const Result<std::string> pem = tls::read_pem(kOp, cert_file);
  if (!pem) return std::unexpected(pem.error());
  const std::vector<tls::Owner<X509>> certificates = tls::certificates_in(*pem);
  if (certificates.empty()) return tls::fail(kOp, cert_file);
  const X509* first = certificates.front().get();
  const auto from = time_of(X509_get0_notBefore(first)), until = time_of(X509_get0_notAfter(first));
  tls::clear_errors();
  if (!from || !until) return std::unexpected(Error(tls::no_start_line(), kOp, cert_file));
  return TlsValidity{.from = *from, .until = *until};
}

}  // namespace tuza::net
