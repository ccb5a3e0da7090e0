#include <tuza/http/websocket/deflate_answer.h>

#include <tuza/http/websocket.h>
#include <tuza/http/websocket/extension_list.h>

#include <algorithm>

namespace tuza::http::websocket {
namespace {

// zlib has no raw window of 8 bits. It reads what was written with one by a window of 9.
constexpr int kBitsMin = 9;

// The parameters of the answer; each may occur once.
class Answer {
 public:
  void parameter(std::string_view name, bool has_value, std::string_view value) {
    if (name == "server_no_context_takeover") return once(kServerTakeover, !has_value);
    if (name == "client_no_context_takeover") return once(kClientTakeover, !has_value);
    const int bits = window_bits(value);
    if (name == "server_max_window_bits") {
      once(kServerBits, bits != 0);
      server_bits_ = std::max(bits, kBitsMin);
    } else if (name == "client_max_window_bits") {
      once(kClientBits, bits >= kBitsMin);
      client_bits_ = bits;
    } else {
      acceptable_ = false;
    }
  }

  // What was asked for must be confirmed; more may be given.
  [[nodiscard]] std::optional<DeflateAgreement> result(const DeflateOptions& offered) const {
    const bool confirmed = offered.context_takeover || has(kServerTakeover);
    if (!acceptable_ || !confirmed || server_bits_ > offered.window_bits) return std::nullopt;
    return DeflateAgreement{.server_takeover = !has(kServerTakeover),
                            .client_takeover = offered.context_takeover && !has(kClientTakeover),
                            .server_bits = server_bits_,
                            .client_bits = std::min(client_bits_, offered.window_bits)};
  }

 private:
  enum Seen : unsigned { kServerTakeover = 1, kClientTakeover = 2, kServerBits = 4, kClientBits = 8 };
  void once(Seen parameter, bool well_formed) {
    if (!well_formed || has(parameter)) acceptable_ = false;
    seen_ |= parameter;
  }
  [[nodiscard]] bool has(Seen parameter) const { return (seen_ & parameter) != 0; }

  int server_bits_ = 15, client_bits_ = 15;
  unsigned seen_ = 0;
  bool acceptable_ = true;
};

}  // namespace

std::string deflate_offer_of(const DeflateOptions& options) {
  std::string offer = "permessage-deflate; client_max_window_bits";
  if (options.window_bits < 15) {
    const std::string bits = std::to_string(options.window_bits);
    offer += "=" + bits + "; server_max_window_bits=" + bits;
  }
  if (!options.context_takeover) offer += "; server_no_context_takeover; client_no_context_takeover";
  return offer;
}

std::optional<DeflateAgreement> read_deflate_answer(std::string_view answer, const DeflateOptions& options) {
  ExtensionList cursor(answer);
  if (cursor.token() != "permessage-deflate") return std::nullopt;
  Answer parameters;
  while (cursor.take(';')) {
    const std::string_view name = cursor.token();
    const bool has_value = cursor.take('=');
    const std::string_view value = has_value ? cursor.value() : std::string_view();
    if (name.empty() || (has_value && value.empty())) return std::nullopt;
    parameters.parameter(name, has_value, value);
  }
  if (!cursor.at_end()) return std::nullopt;  // another extension, which was not offered
  return parameters.result(options);
}

}  // namespace tuza::http::websocket
