#include <tuza/http/websocket/deflate_offer.h>

#include <tuza/http/websocket.h>
#include <tuza/http/websocket/extension_list.h>

#include <algorithm>

namespace tuza::http::websocket {
namespace {

// One offer; each parameter may occur once.
class Negotiation {
 public:
  explicit Negotiation(const DeflateOptions& options) : options_(options) {
    agreed_.server_takeover = agreed_.client_takeover = options.context_takeover;
    agreed_.server_bits = options.window_bits;
  }

  void parameter(std::string_view name, bool has_value, std::string_view value) {
    if (name == "server_no_context_takeover") return once(kServerTakeover, !has_value);
    if (name == "client_no_context_takeover") return once(kClientTakeover, !has_value);
    const int bits = window_bits(value);
    if (name == "server_max_window_bits") {
      // zlib has no raw window of 8 bits.
      once(kServerBits, bits >= 9);
      agreed_.server_bits = std::min(agreed_.server_bits, bits);
    } else if (name == "client_max_window_bits") {
      once(kClientBits, !has_value || bits >= 8);
      // A window of 8 bits is read with one of 9.
      agreed_.client_bits = std::min(options_.window_bits, has_value ? std::max(bits, 9) : 15);
      agreed_.name_client_bits = !has_value || bits >= 9;
    } else {
      acceptable_ = false;
    }
  }

  [[nodiscard]] std::optional<DeflateAgreement> result() {
    if (!acceptable_) return std::nullopt;
    if ((seen_ & kServerTakeover) != 0) agreed_.server_takeover = false;
    if ((seen_ & kClientTakeover) != 0) agreed_.client_takeover = false;
    return agreed_;
  }

 private:
  enum Seen : unsigned { kServerTakeover = 1, kClientTakeover = 2, kServerBits = 4, kClientBits = 8 };
  void once(Seen parameter, bool well_formed) {
    if (!well_formed || (seen_ & parameter) != 0) acceptable_ = false;
    seen_ |= parameter;
  }

  const DeflateOptions& options_;
  DeflateAgreement agreed_;
  unsigned seen_ = 0;
  bool acceptable_ = true;
};

}  // namespace

std::string DeflateAgreement::text() const {
  std::string text = "permessage-deflate";
  if (!server_takeover) text += "; server_no_context_takeover";
  if (!client_takeover) text += "; client_no_context_takeover";
  if (server_bits < 15) text += "; server_max_window_bits=" + std::to_string(server_bits);
  if (name_client_bits && client_bits < 15) text += "; client_max_window_bits=" + std::to_string(client_bits);
  return text;
}

std::optional<DeflateAgreement> accept_deflate(std::string_view offers, const DeflateOptions& options,
                                               bool& malformed) {
  std::optional<DeflateAgreement> accepted;
  ExtensionList cursor(offers);
  while (!cursor.at_end()) {
    if (cursor.take(',')) continue;  // RFC 9110 5.6.1: empty elements are ignored
    const std::string_view name = cursor.token();
    malformed = malformed || name.empty();
    Negotiation negotiation(options);
    while (!malformed && cursor.take(';')) {
      const std::string_view parameter = cursor.token();
      const bool has_value = cursor.take('=');
      const std::string_view value = has_value ? cursor.value() : std::string_view();
      malformed = parameter.empty() || (has_value && value.empty());
      negotiation.parameter(parameter, has_value, value);
    }
    if (malformed || !(cursor.at_end() || cursor.take(','))) {
      malformed = true;
      return std::nullopt;
    }
    if (!accepted && name == "permessage-deflate") accepted = negotiation.result();
  }
  return accepted;
}

}  // namespace tuza::http::websocket
