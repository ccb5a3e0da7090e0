#include <tuza/http/middleware/request_id.h>

#include <tuza/http/serve/context_for.h>
#include <tuza/http/serve/only_header.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kTraceparentBytes = 55;

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, perhaps longer in later versions.
bool is_traceparent(std::string_view text) {
  if (text.size() < kTraceparentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16);
  if (!is_hex(version) || version == "ff" || !is_hex(trace) || !is_hex(span)) return false;
  if (!is_hex(text.substr(53, 2)) || is_zero(trace) || is_zero(span)) return false;
  return version == "00" ? text.size() == kTraceparentBytes
                         : text.size() == kTraceparentBytes || text[kTraceparentBytes] == '-';
}

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= RequestId::kIdBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           std::string_view("-_.:+/=@").contains(c);
  });
}

// splitmix64, by Steele, Lea and Flood: consecutive numbers give values without a pattern.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void put_hex(char* out, std::uint64_t value) {
  for (int i = 15; i >= 0; --i, value >>= 4) out[i] = "0123456789abcdef"[value & 15];
}

}  // namespace

// Thread-safe. A number is used once; the seeds keep processes apart.
class RequestIds {
 public:
  explicit RequestIds(RequestIdOptions options) : options_(std::move(options)) {
    const auto token = [](char c) { return is(c, kTokenChar); };
    if (options_.header.empty() || !std::ranges::all_of(options_.header, token)) {
      throw std::invalid_argument("request_id(): \"" + options_.header + "\" is not the name of a field");
    }
    std::random_device random;
    for (std::uint64_t& seed : seeds_) seed = (std::uint64_t{random()} << 32) | random();
  }

  [[nodiscard]] RequestId make(const Request& request) {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
    const std::uint64_t step = kGolden * (1 + next_.fetch_add(1, std::memory_order_relaxed));
    RequestId made;
    char* const trace = made.trace_.data();
    std::optional<std::string_view> parent, id;
    if (options_.trust_client) {
      parent = only_header(request, "traceparent");
      id = only_header(request, options_.header);
    }
    std::string_view("00-").copy(trace, 3);
    if (parent && is_traceparent(*parent)) {
      parent->substr(3, 32).copy(trace + 3, 32);
      made.sampled_ = (hex_value((*parent)[54]) & 1) != 0;
    } else {
      put_hex(trace + 3, mixed(seeds_[0] + step) | 1);  // never zero
      put_hex(trace + 19, mixed(seeds_[1] + step));
    }
    put_hex(trace + 36, mixed(seeds_[2] + step) | 1);
    trace[35] = trace[52] = '-';
    trace[53] = '0';
    trace[54] = made.sampled_ ? '1' : '0';
    const std::string_view chosen = id && is_id(*id) ? *id : made.trace_id();
    made.id_bytes_ = static_cast<std::uint8_t>(chosen.copy(made.id_.data(), made.id_.size()));
    return made;
  }

  [[nodiscard]] const std::string& header() const { return options_.header; }
  [[nodiscard]] bool in_context() const { return options_.in_context; }

 private:
  const RequestIdOptions options_;
  std::array<std::uint64_t, 3> seeds_{};
  // Relaxed: only that no two requests get the same number matters.
  std::atomic<std::uint64_t> next_{0};
};

Middleware request_id(RequestIdOptions options) {
  return [ids = std::make_shared<RequestIds>(std::move(options))](Handler next) -> Handler {
    return [ids, next = std::move(next)](Request& request, ResponseWriter& response) {
      const RequestId& id = request.set(kRequestId, ids->make(request));
      response.set_header(ids->header(), id.id());
      if (!ids->in_context()) return next(request, response);
      const ContextFor inside(request.exchange(),
                              with_value(request.context(), kTraceparent, std::string(id.traceparent())));
      next(request, response);
    };
  };
}

}  // namespace tuza::http
