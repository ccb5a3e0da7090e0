#include <tuza/http/middleware/compress.h>

#include <tuza/http/codec/codec.h>
#include <tuza/http/files/preconditions.h>
#include <tuza/http/negotiate.h>
#include <tuza/http/serve/body_filter.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/vary.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/spin_lock.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kPieceBytes = 16 << 10;

struct Working {
  std::unique_ptr<Encoder> encoder;
  std::array<char, kPieceBytes> piece;
};

// Thread-safe. Last in, first out: the memory is in some cache.
class Encoders {
 public:
  Encoders(Coding coding, int level, std::size_t kept) : coding_(coding), level_(level), kept_(kept) {
    free_.reserve(kept);
    give_back(make());  // finds out whether the library has the level
  }

  std::unique_ptr<Working> take() {
    std::unique_ptr<Working> working;
    {
      const LockGuard lock(lock_);
      if (!free_.empty()) {
        working = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (working == nullptr) return make();
    working->encoder->reset();
    return working;
  }
  void give_back(std::unique_ptr<Working> working) {
    const LockGuard lock(lock_);
    if (free_.size() < kept_) free_.push_back(std::move(working));
  }

 private:
  [[nodiscard]] std::unique_ptr<Working> make() const {
    auto working = std::make_unique_for_overwrite<Working>();
    working->encoder = make_encoder(coding_, level_);
    return working;
  }

  const Coding coding_;
  const int level_;
  const std::size_t kept_;
  rt::SpinLock lock_;
  std::vector<std::unique_ptr<Working>> free_ TUZA_GUARDED_BY(lock_);
};

// Constant after construction, except for what Encoders guards.
struct EncodingRules {
  explicit EncodingRules(CompressOptions from) : options(std::move(from)) {
    if (options.percent_max < 1 || options.percent_max > 100) {
      throw std::invalid_argument("compress(): percent_max is 1 to 100");
    }
    for (const std::string& text : options.codings) add(text);
  }

  void add(std::string_view text) {
    constexpr std::array<std::string_view, kCodingCount> kKnown{"gzip", "br", "zstd"};
    if (std::ranges::find(kKnown, text) == kKnown.end()) {
      throw std::invalid_argument("compress(): unknown coding \"" + std::string(text) + "\"");
    }
    const std::optional<Coding> coding = coding_named(text);
    if (!coding) return;
    const int level = *coding == Coding::kGzip     ? options.gzip_level
                      : *coding == Coding::kBrotli ? options.br_level
                                                   : options.zstd_level;
    offers.push_back(name(*coding));
    encoders[static_cast<std::size_t>(*coding)] =
        std::make_unique<Encoders>(*coding, level, options.encoders_kept);
  }

  [[nodiscard]] bool has_type(std::string_view content_type) const {
    const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
    return std::ranges::any_of(options.types, [type](std::string_view entry) {
      if (entry.starts_with('+')) {
        return type.size() > entry.size() &&
               equals_ignoring_case(type.substr(type.size() - entry.size()), entry);
      }
      if (!entry.ends_with("/*")) return equals_ignoring_case(type, entry);
      entry.remove_suffix(1);
      return equals_ignoring_case(type.substr(0, entry.size()), entry);
    });
  }

  CompressOptions options;
  std::vector<std::string_view> offers;
  std::array<std::unique_ptr<Encoders>, kCodingCount> encoders;
};

bool forbids_transform(std::string_view cache_control) {
  constexpr std::string_view kNoTransform = "no-transform";
  for (std::size_t at = 0; at + kNoTransform.size() <= cache_control.size(); ++at) {
    if (equals_ignoring_case(cache_control.substr(at, kNoTransform.size()), kNoTransform)) return true;
  }
  return false;
}

// The coding of the response; nullopt: none.
std::optional<Coding> chosen(const Request& request, const EncodingRules& settings) {
  constexpr std::size_t kFieldsMax = 8;
  std::array<std::string_view, kFieldsMax> fields;
  std::size_t count = 0;
  for (const HeaderField field : request.headers()) {
    if (count < kFieldsMax && equals_ignoring_case(field.name, "Accept-Encoding"))
      fields[count++] = field.value;
  }
  if (count == 0) return std::nullopt;
  const auto coding = choose_encoding(std::span(fields).first(count), settings.offers);
  return coding ? coding_named(*coding) : std::nullopt;
}

class Compression final : public BodyFilter {
 public:
  Compression(Request& request, EncodingRules& settings)
      : BodyFilter(request.exchange()),
        request_(request),
        settings_(settings),
        coding_(chosen(request, settings)) {}
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;
  ~Compression() {
    if (working_ != nullptr) encoders().give_back(std::move(working_));
  }

  bool begin() override {
    if (!eligible()) {
      vary_if_part();
      return false;
    }
    vary();
    if (!coding_ ||
        exchange_.declared_length().value_or(settings_.options.bytes_min) < settings_.options.bytes_min) {
      return false;
    }
    // Without a body there is nothing to encode, but the fields are those of the answer to GET.
    if (exchange_.sends_body()) working_ = encoders().take();
    set_fields();
    streaming_ = true;
    return true;
  }

  Result<void> write(std::string_view data, bool flush, const Context* ctx) override {
    return encode(data, flush ? Encoder::Step::kFlush : Encoder::Step::kMore, ctx);
  }

  // The handler has returned.
  void finish() {
    if (!installed()) return;
    if (streaming_) {
      if (working_ != nullptr && exchange_.wrote_all_it_declared()) {
        (void)encode({}, Encoder::Step::kEnd, &kServerLimits);
      }
      return end();
    }
    if (!exchange_.reopen_response()) return;
    if (exchange_.status_code() == 304) {
      describe_stored();
    } else if (eligible()) {
      compress_held();
    } else {
      vary_if_part();
    }
    exchange_.settle_response();
  }

 private:
  void vary() { add_vary(exchange_, HeaderLines(exchange_.buffers().extra), "Accept-Encoding"); }
  // The answer without Range would have it, so this one must (RFC 9110 15.3.7).
  void vary_if_part() {
    if (exchange_.status_code() != 206) return;
    const std::string_view type = exchange_.response_header("Content-Type").value_or("");
    if (settings_.has_type(type) || type.starts_with("multipart/byteranges")) vary();
  }
  [[nodiscard]] Encoders& encoders() const { return *settings_.encoders[static_cast<std::size_t>(*coding_)]; }

  [[nodiscard]] bool eligible() const {
    const int status = exchange_.status_code();
    if (status == 204 || status == 205 || status == 206 || status == 304) return false;
    std::string_view type;
    for (const HeaderField field : HeaderLines(exchange_.buffers().extra)) {
      const auto is = [&field](std::string_view wanted) { return equals_ignoring_case(field.name, wanted); };
      if (is("Content-Encoding") || is("Content-Range") || is("Content-Digest") || is("Repr-Digest") ||
          is("Content-MD5") || is("Digest")) {
        return false;
      }
      if (is("Cache-Control") && forbids_transform(field.value)) return false;
      if (is("Content-Type")) type = field.value;
    }
    return settings_.has_type(type);
  }

  void set_fields() {
    exchange_.set_header("Content-Encoding", name(*coding_));
    exchange_.remove_header("Accept-Ranges");
    const std::optional<std::string_view> etag = exchange_.response_header("ETag");
    if (etag && etag->starts_with('"')) exchange_.set_header("ETag", "W/" + std::string(*etag));
  }

  // 304: the fields are those of the stored response (RFC 9110 15.4.5), which depends on Accept-Encoding. If the client has
  // it in a coding, it has told its weak tag.
  void describe_stored() {
    vary();
    const std::string etag(exchange_.response_header("ETag").value_or(""));
    const std::string known = combined_header(request_, "If-None-Match").value_or("");
    if (etag.starts_with('"') && known.contains("W/" + etag)) exchange_.set_header("ETag", "W/" + etag);
  }

  void compress_held() {
    vary();
    const std::uint64_t bytes = exchange_.written();
    if (!coding_) return;
    if (!exchange_.sends_body()) {
      if (exchange_.declared_length().value_or(bytes) < settings_.options.bytes_min) return;
      set_fields();
      return exchange_.forget_length();
    }
    if (bytes < settings_.options.bytes_min || !exchange_.wrote_all_it_declared()) return;
    working_ = encoders().take();
    // Where the output ends, compression has saved too little.
    const std::size_t room = std::min<std::size_t>(
        kPieceBytes, bytes * static_cast<std::size_t>(settings_.options.percent_max) / 100);
    std::string_view body = exchange_.held_body();
    const Encoder::Progress progress =
        working_->encoder->encode(body, std::span(working_->piece).first(room), Encoder::Step::kEnd);
    if (!progress.done) return;
    set_fields();
    exchange_.replace_held_body({working_->piece.data(), progress.produced});
  }

  Result<void> encode(std::string_view data, Encoder::Step step, const Context* ctx) {
    for (;;) {
      const Encoder::Progress progress = working_->encoder->encode(data, working_->piece, step);
      if (const Result<void> sent = pass_on({working_->piece.data(), progress.produced}, ctx); !sent) {
        return sent;
      }
      if (progress.done) return {};
    }
  }

  const Request& request_;
  EncodingRules& settings_;
  const std::optional<Coding> coding_;
  std::unique_ptr<Working> working_;  // from the first piece of the body
  bool streaming_ = false;
};

}  // namespace

Middleware compress(CompressOptions options) {
  return [settings = std::make_shared<EncodingRules>(std::move(options))](Handler next) -> Handler {
    return [settings, next = std::move(next)](Request& request, ResponseWriter& response) {
      Compression compression(request, *settings);
      next(request, response);
      compression.finish();
    };
  };
}

}  // namespace tuza::http
