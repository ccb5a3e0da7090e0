#include <tuza/http/middleware/decompress.h>

#include <tuza/http/codec/codec.h>
#include <tuza/http/codec/coded_body.h>
#include <tuza/http/serve/body_filter.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/status_error.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

struct DecodingRules {
  explicit DecodingRules(const DecompressOptions& options)
      : bytes_max(options.bytes_max), ratio_max(options.ratio_max) {
    if (ratio_max == 0) throw std::invalid_argument("decompress(): ratio_max is at least 1");
    for (const std::string& text : options.codings) {
      if (text != "gzip" && text != "br" && text != "zstd") {
        throw std::invalid_argument("decompress(): unknown coding \"" + text + "\"");
      }
      const std::optional<Coding> coding = coding_named(text);
      if (!coding) continue;
      known[static_cast<std::size_t>(*coding)] = true;
      names += (names.empty() ? "" : ", ") + text;
    }
  }
  [[nodiscard]] bool knows(std::optional<Coding> coding) const {
    return coding && known[static_cast<std::size_t>(*coding)];
  }

  std::size_t bytes_max, ratio_max;
  std::array<bool, kCodingCount> known{};
  std::string names;
};

class Decoding final : public BodySource {
 public:
  Decoding(Exchange& exchange, const DecodingRules& settings, Coding coding)
      : BodySource(exchange),
        body_(coding, {.bytes_max = settings.bytes_max, .ratio_max = settings.ratio_max}, "read body") {}

  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx) override {
    return body_.read(into, [&](std::span<std::byte> piece) { return read_below(piece, ctx); });
  }

  // With which status to answer if the handler has not; 0: the body was well formed, so far.
  [[nodiscard]] int status() const { return body_.why() == nullptr ? 0 : body_.too_large() ? 413 : 400; }
  [[nodiscard]] std::string_view why() const { return body_.why(); }

 private:
  CodedBody body_;
};

// The handler sees the decoded body, and so none of the fields that describe the other one.
class DecodedHead {
 public:
  explicit DecodedHead(Head& head, const char* base) : head_(head), chunked_(head.chunked) {
    hide_coding(head, base);
    head.chunked = true;  // for Request: of unknown length
  }
  DecodedHead(const DecodedHead&) = delete;
  DecodedHead& operator=(const DecodedHead&) = delete;
  ~DecodedHead() { head_.chunked = chunked_; }

 private:
  Head& head_;
  const bool chunked_;
};

void answer_decoded(const DecodingRules& settings, Coding coding, const Handler& next, Request& request,
                    ResponseWriter& response) {
  ExchangeBuffers& buffers = request.exchange().buffers();
  const DecodedHead head(buffers.head, buffers.head_base);
  const auto decoding = std::make_unique<Decoding>(request.exchange(), settings, coding);
  try {
    next(request, response);
  } catch (const StatusError&) {
    // Of a call that could not read the body, and does not know why.
    if (decoding->status() == 0 || response.head_sent()) throw;
  }
  if (decoding->status() != 0 && !response.head_sent()) {
    response.error(decoding->status(), std::string(decoding->why()) + "\n");
  }
}

}  // namespace

Middleware decompress(const DecompressOptions& options) {
  return [settings = std::make_shared<const DecodingRules>(options)](Handler next) -> Handler {
    return [settings, next = std::move(next)](Request& request, ResponseWriter& response) {
      const ContentEncoding encoding = content_encoding(request.headers());
      if (!encoding.coding) return next(request, response);
      const std::optional<Coding> known = coding_named(*encoding.coding);
      if (encoding.several || !settings->knows(known)) {
        response.set_header("Accept-Encoding", settings->names);
        return response.error(415);
      }
      answer_decoded(*settings, *known, next, request, response);
    };
  };
}

}  // namespace tuza::http
