#include <tuza/http/client.h>

#include <tuza/http/client/exchange.h>
#include <tuza/http/client/response_error.h>
#include <tuza/http/client/state.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/http/wire/host.h>
#include <tuza/sched/rt/base/check.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::string_view kHost = "Host";

// What the client sets itself: it decides how a message ends. And a Host that every server takes for the same.
void require_own(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 5> kOurs{"Content-Length", "Transfer-Encoding", "Connection",
                                                  "Expect", "Upgrade"};
  const bool ours =
      std::ranges::any_of(kOurs, [&](std::string_view one) { return equals_ignoring_case(one, name); });
  if (ours) throw std::invalid_argument(std::string(name) + " is set by the client");
  if (!equals_ignoring_case(name, kHost)) return;
  const std::string_view host = trim(value);
  if (host.empty() || host.front() == ':' || !is_host_and_port(host))
    throw std::invalid_argument("malformed value of Host");
}

constexpr std::size_t kWholePiece = 16 << 10;
constexpr std::size_t kWholeReserved = 1 << 20;

}  // namespace

// -- ClientRequest

void ClientRequest::BeingSent::complain() {
  rt::fatal(
      "an http::ClientRequest ends while its body is being sent beside the response: see keep_sending()");
}

ClientRequest& ClientRequest::add_header(std::string_view name, std::string_view value) {
  require_field(name, value);
  require_own(name, value);
  if (equals_ignoring_case(name, kHost) && header(kHost)) throw std::invalid_argument("a second Host");
  if (lies_in(name, fields_) || lies_in(value, fields_)) [[unlikely]]
    return add_header(std::string(name), std::string(value));
  append_field_line(fields_, name, trim(value));
  return *this;
}

ClientRequest& ClientRequest::remove_header(std::string_view name) {
  std::string lines;
  for (const auto& [other, kept] : headers()) {
    if (!equals_ignoring_case(other, name)) append_field_line(lines, other, trim(kept));
  }
  fields_ = std::move(lines);
  return *this;
}

ClientRequest& ClientRequest::set_header(std::string_view name, std::string_view value) {
  require_field(name, value);
  require_own(name, value);
  if (lies_in(name, fields_) || lies_in(value, fields_)) [[unlikely]]
    return set_header(std::string(name), std::string(value));
  if (header(name)) remove_header(name);
  append_field_line(fields_, name, trim(value));
  return *this;
}

ClientRequest& ClientRequest::set_upgrade(std::string_view protocols) {
  require_field("Upgrade", protocols);
  upgrade_ = trim(protocols);
  return *this;
}

ClientRequest& ClientRequest::add_trailer(std::string_view name, std::string_view value) {
  require_field(name, value);
  if (!may_be_trailer(name)) throw std::invalid_argument(std::string(name) + " cannot be a trailer");
  if (lies_in(name, trailers_) || lies_in(value, trailers_)) [[unlikely]]
    return add_trailer(std::string(name), std::string(value));
  append_field_line(trailers_, name, trim(value));
  return *this;
}

ClientRequest& ClientRequest::set_body(std::string body, std::string_view content_type) {
  text_ = std::make_shared<const std::string>(std::move(body));
  without_body_ = false;
  source_ = nullptr;
  opener_ = nullptr;
  splicer_ = nullptr;
  if (!content_type.empty()) set_header("Content-Type", content_type);
  return *this;
}

ClientRequest& ClientRequest::set_body_source(BodySource source, std::optional<std::uint64_t> length) {
  source_ = std::move(source);
  opener_ = nullptr;
  splicer_ = nullptr;
  length_ = length;
  text_.reset();
  without_body_ = false;
  return *this;
}

ClientRequest& ClientRequest::set_body_opener(BodyOpener open, std::optional<std::uint64_t> length) {
  set_body_source(BodySource(), length);
  opener_ = std::move(open);
  return *this;
}

std::optional<std::string_view> ClientRequest::header(std::string_view name) const {
  return headers().find(name);
}

// -- ClientResponse

void ClientResponse::GiveBack::operator()(ClientExchange* exchange) const {
  ClientExchange::give_back(exchange);
}

int ClientResponse::status() const { return exchange_->head().status; }
std::string_view ClientResponse::reason() const { return exchange_->head().reason.in(exchange_->base()); }
int ClientResponse::version_minor() const { return exchange_->head().version_minor; }
ReceivedHeaders ClientResponse::headers() const { return {exchange_->head(), exchange_->base()}; }
std::optional<std::string_view> ClientResponse::header(std::string_view name) const {
  return headers().find(name);
}
const Url& ClientResponse::url() const { return exchange_->url(); }
HeaderLines ClientResponse::trailers() const { return HeaderLines(exchange_->trailers()); }

bool ClientResponse::decompressed() const { return exchange_->decompresses(); }

std::optional<std::uint64_t> ClientResponse::content_length() const {
  const ResponseHead& head = exchange_->head();
  if (head.chunked || head.until_close || decompressed()) return std::nullopt;
  return head.content_length;
}

Result<HijackedStream> ClientResponse::hijack() { return exchange_->hijack(); }

Result<std::size_t> ClientResponse::read(std::span<std::byte> into) {
  Result<std::size_t> n = exchange_->read_body(into);
  if (!n) [[unlikely]]
    return std::unexpected(exchange_->named(n.error()));
  return n;
}

Result<std::string> ClientResponse::body(std::optional<std::size_t> bytes_max) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() - 1;
  const std::size_t most = std::min(bytes_max.value_or(exchange_->options().body_bytes_max), kMost);
  const auto too_large = [&] {
    return std::unexpected(exchange_->named(
        response_error(Errc::kBadMessage, "body larger than " + std::to_string(most) + " bytes")));
  };
  const bool known = content_length().has_value();
  const std::uint64_t length = known ? exchange_->body_remaining() : 0;
  if (length > most) return too_large();
  std::string text;
  text.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(length, kWholeReserved)));
  for (;;) {
    const std::size_t before = text.size();
    // One byte beyond the limit tells whether there is more.
    std::size_t room = std::min(std::max(text.capacity() - before, kWholePiece), most + 1 - before);
    if (known) room = std::min(room, static_cast<std::size_t>(length) - before);
    text.resize(before + room);
    const Result<std::size_t> n = read(std::span(text).subspan(before));
    text.resize(before + n.value_or(0));
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return text;
    if (text.size() > most) return too_large();
  }
}

Result<std::string> ClientResponse::json_text(std::optional<std::size_t> bytes_max) {
  Result<std::string> text = body(bytes_max);
  if (!text) return text;
  if (const std::optional<std::size_t> byte = json_too_deep(*text, JsonLimits().depth_max))
    return std::unexpected(not_the_json("nested too deeply at byte " + std::to_string(*byte)));
  return text;
}

Error ClientResponse::not_the_json(std::string_view why) const {
  return exchange_->named(response_error(Errc::kBadMessage, "JSON: " + std::string(why)));
}

// -- Client

Client::Client(ClientOptions options) : state_(std::make_shared<ClientState>(std::move(options))) {}

Client::~Client() { state_->pool().close(); }

Result<ClientResponse> Client::send(const Context& ctx, ClientRequest& request) {
  return state_->send(ctx, request);
}

Result<ClientResponse> Client::get(const Context& ctx, std::string_view url) {
  return send(ctx, ClientRequest(Method::kGet, url));
}

Result<ClientResponse> Client::head(const Context& ctx, std::string_view url) {
  return send(ctx, ClientRequest(Method::kHead, url));
}

Result<ClientResponse> Client::post(const Context& ctx, std::string_view url, std::string_view content_type,
                                    std::string body) {
  ClientRequest request(Method::kPost, url);
  request.set_body(std::move(body), content_type);
  return send(ctx, request);
}

void Client::close_idle() { state_->pool().close_idle(); }

ClientStats Client::stats() const { return state_->stats(); }

}  // namespace tuza::http
