#include <tuza/http/middleware/basic_auth.h>

#include <tuza/http/credentials.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/wire/digest.h>

#include <openssl/crypto.h>

#include <memory>
#include <optional>
#include <stdexcept>

namespace tuza::http {
namespace {

// Texts of any length become 32 bytes, so that comparing them does not tell their lengths.
bool same(const Sha256Digest& a, const Sha256Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

class Guard {
 public:
  explicit Guard(BasicAuthOptions options) : check_(std::move(options.check)) {
    if (options.users.empty() == !check_) {
      throw std::invalid_argument("basic_auth() needs either users or a check");
    }
    for (const auto& [name, password] : options.users) {
      if (name.contains(':'))
        throw std::invalid_argument("basic_auth(): the name \"" + name + "\" has a colon");
      users_.emplace_back(sha256_of(name), sha256_of(password));
    }
    challenge_ = "Basic realm=" + detail::quoted(options.realm) + ", charset=\"UTF-8\"";
  }

  [[nodiscard]] const std::string& challenge() const { return challenge_; }

  // The name of the user who may pass.
  [[nodiscard]] std::optional<std::string> admitted(const Request& request) const {
    std::optional<BasicCredentials> sent = request.basic_auth();
    if (!sent) return std::nullopt;
    if (!(check_ ? check_(sent->user, sent->password) : knows(sent->user, sent->password))) {
      return std::nullopt;
    }
    return std::move(sent->user);
  }

 private:
  // All users are compared, also behind the one that is found.
  [[nodiscard]] bool knows(std::string_view name, std::string_view password) const {
    const Sha256Digest name_hash = sha256_of(name), password_hash = sha256_of(password);
    unsigned found = 0;
    for (const auto& [user, secret] : users_) {
      found |=
          static_cast<unsigned>(same(user, name_hash)) & static_cast<unsigned>(same(secret, password_hash));
    }
    return found != 0;
  }

  std::function<bool(std::string_view, std::string_view)> check_;
  std::vector<std::pair<Sha256Digest, Sha256Digest>> users_;
  std::string challenge_;
};

}  // namespace

Middleware basic_auth(BasicAuthOptions options) {
  return [guard = std::make_shared<const Guard>(std::move(options))](Handler next) -> Handler {
    return [guard, next = std::move(next)](Request& request, ResponseWriter& response) {
      std::optional<std::string> user = guard->admitted(request);
      if (!user) {
        response.set_header("WWW-Authenticate", guard->challenge());
        return response.error(401);
      }
      request.set(kBasicUser, std::move(*user));
      next(request, response);
    };
  };
}

}  // namespace tuza::http
