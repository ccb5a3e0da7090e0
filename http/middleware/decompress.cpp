#include <tuza/http/middleware/decompress.h>

#include <tuza/http/codec/codec.h>
#include <tuza/http/serve/body_filter.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kFreeBytes =
    1 << 20;  // where the ratio begins to count: small bodies repeat themselves

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
      : BodySource(exchange), settings_(settings), decoder_(make_decoder(coding)) {}

  Result<std::size_t> read(std::span<std::byte> into, const Context* ctx) override {
    if (status_ != 0) return fail(status_, why_);
    if (into.empty()) return std::size_t{0};
    const std::span<char> out(reinterpret_cast<char*>(into.data()), into.size());
    for (;;) {
      if (unread_.empty() && !all_read_) {
        const Result<std::size_t> got = read_below(std::as_writable_bytes(std::span(piece_)), ctx);
        if (!got) return got;
        all_read_ = *got == 0;
        received_ += *got;
        unread_ = {piece_.data(), *got};
      }
      if (received_ == 0) return std::size_t{0};
      const Decoder::Progress progress = decoder_->decode(unread_, out);
      if (progress.state == Decoder::State::kMalformed) return fail(400, "malformed compressed body");
      if (progress.produced > 0) return account(progress.produced);
      if (!unread_.empty() || !all_read_) continue;
      if (progress.state == Decoder::State::kEnd) return std::size_t{0};
      return fail(400, "truncated compressed body");
    }
  }

  // With which status to answer if the handler has not; 0: the body was well formed, so far.
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::string_view why() const { return why_; }

 private:
  Result<std::size_t> account(std::size_t produced) {
    produced_ += produced;
    const bool bomb = produced_ > kFreeBytes && produced_ / settings_.ratio_max > received_;
    if (produced_ > settings_.bytes_max || bomb) return fail(413, "decompressed body too large");
    return produced;
  }
  std::unexpected<Error> fail(int status, const char* why) {
    status_ = status;
    why_ = why;
    return std::unexpected(Error(Errc::kBadMessage, "read body", why));
  }

  const DecodingRules& settings_;
  const std::unique_ptr<Decoder> decoder_;
  std::array<char, 8 << 10> piece_;
  std::string_view unread_;
  bool all_read_ = false;
  std::uint64_t received_ = 0, produced_ = 0;
  int status_ = 0;
  const char* why_ = "";
};

// The handler sees the decoded body, and so none of the fields that describe the other one.
class DecodedHead {
 public:
  explicit DecodedHead(Head& head, const char* base) : head_(head), chunked_(head.chunked) {
    const auto describes = [base](const Head::Field& field) {
      const std::string_view name = field.name.in(base);
      return equals_ignoring_case(name, "Content-Encoding") || equals_ignoring_case(name, "Content-Length");
    };
    auto* const end = head.fields.data() + head.field_count;
    head.field_count =
        static_cast<std::uint32_t>(std::remove_if(head.fields.data(), end, describes) - head.fields.data());
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
      std::string_view coding;
      int count = 0;
      for (const HeaderField field : request.headers()) {
        if (!equals_ignoring_case(field.name, "Content-Encoding")) continue;
        coding = trim(field.value);
        ++count;
      }
      if (count == 0 || (count == 1 && equals_ignoring_case(coding, "identity"))) {
        return next(request, response);
      }
      const std::optional<Coding> known = coding_named(coding);
      if (count > 1 || !settings->knows(known)) {
        response.set_header("Accept-Encoding", settings->names);
        return response.error(415);
      }
      answer_decoded(*settings, *known, next, request, response);
    };
  };
}

}  // namespace tuza::http
