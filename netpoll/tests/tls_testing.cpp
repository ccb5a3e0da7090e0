#include <tuza/netpoll/tests/tls_testing.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <tuza/sched/arch/sanitizer.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

// OpenSSL counts references to data shared by connections with atomics that ThreadSanitizer does not see: the
// library is not compiled with it. The false race is then reported at the last free().
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:libcrypto.so\nrace:libssl.so\n"; }

namespace tuza::net::testing {

struct Authority::Secrets {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
  long serial = 1;
};

namespace {

// OpenSSL frees its per-thread data when the thread ends. Threads of the last runtime may be about to end: to
// LeakSanitizer, which checks just then, their data has leaked. (In other builds there is nothing to wait
// for, and ThreadSanitizer has a thread of its own that never ends.)
class LastThreadsEnd : public ::testing::Environment {
 public:
  void SetUp() override { before_ = threads(); }
  void TearDown() override {
    for (int i = 0; i < 5000 && threads() > before_; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  static std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  }
  std::ptrdiff_t before_ = 0;
};
const auto* const g_last_threads_end =
    rt::kAsan ? ::testing::AddGlobalTestEnvironment(new LastThreadsEnd) : nullptr;

void add_extension(X509* certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* make_certificate(const CertificateWish& wish, long serial, EVP_PKEY* key, X509* issuer,
                       EVP_PKEY* signer) {
  X509* certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate), wish.valid_for_s);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer != nullptr ? issuer : certificate));
  add_extension(certificate, NID_basic_constraints, wish.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  std::string names;
  for (const std::string& name : wish.names) names += (names.empty() ? "" : ",") + name;
  if (!wish.is_authority && !names.empty()) add_extension(certificate, NID_subject_alt_name, names);
  X509_sign(certificate, signer, EVP_sha256());
  return certificate;
}

void write_pem(const std::string& path, auto write) {
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  write(file);
  std::fclose(file);
}

}  // namespace

Authority::Authority(const std::string& common_name) : secrets_(std::make_unique<Secrets>()) {
  std::string name = std::filesystem::temp_directory_path() / "tuza-tls-XXXXXX";
  folder_ = ::mkdtemp(name.data());
  secrets_->key = EVP_EC_gen("P-256");
  secrets_->certificate = make_certificate({.common_name = common_name, .is_authority = true}, 1,
                                           secrets_->key, nullptr, secrets_->key);
  write_pem(file(), [&](FILE* out) { PEM_write_X509(out, secrets_->certificate); });
}

Authority::~Authority() {
  X509_free(secrets_->certificate);
  EVP_PKEY_free(secrets_->key);
  std::filesystem::remove_all(folder_);
}

TlsCertificate Authority::issue(const std::string& name, const CertificateWish& wish) {
  TlsCertificate files{path(name + ".crt"), path(name + ".key")};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = make_certificate(wish, ++secrets_->serial, key, secrets_->certificate, secrets_->key);
  write_pem(files.cert_file, [&](FILE* out) { PEM_write_X509(out, certificate); });
  write_pem(files.key_file,
            [&](FILE* out) { PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

std::string Authority::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name)) << text;
  return path(name);
}

TlsTest::Ends TlsTest::meet(const std::shared_ptr<TlsServer>& server,
                            const std::shared_ptr<TlsClient>& client, std::string_view name) {
  Listener listener = listen_on_loopback();
  listener.use_tls(server);
  Ends ends{std::unexpected(Error(Errc::kClosed, "")), std::unexpected(Error(Errc::kClosed, ""))};
  WaitGroup group;
  group.go([&] {
    Result<Conn> conn = dial("tcp", listener.address());
    ends.client = client->start(std::move(*conn), name);
  });
  ends.server = listener.accept();
  if (const Result<void> shaken = ends.server->handshake(); !shaken)
    ends.server = std::unexpected(shaken.error());
  group.wait();
  return ends;
}

TlsTest::Ends TlsTest::meet(TlsServerOptions server, TlsClientOptions client, std::string_view name) {
  return meet(TlsServer::load(std::move(server)).value(), TlsClient::load(std::move(client)).value(), name);
}

TcpPair TlsTest::pair() {
  Ends ends = meet(server_options(), client_options());
  return {std::move(ends.client.value()), std::move(ends.server.value())};
}

}  // namespace tuza::net::testing
