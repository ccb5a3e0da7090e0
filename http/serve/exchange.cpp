// The rules of a response that do not depend on what carries it.
#include <tuza/http/serve/exchange.h>

#include <tuza/http/detail/head_hook.h>
#include <tuza/http/handler.h>
#include <tuza/http/header_range.h>
#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/serve/body_budget.h>
#include <tuza/http/serve/body_filter.h>
#include <tuza/http/serve/error_fields.h>
#include <tuza/http/serve/handler_argument.h>
#include <tuza/http/serve/vary.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/http/wire/list.h>
#include <tuza/sched/log.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <expected>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// A body that is wanted as a whole is read in pieces of this size, directly into its final place.
constexpr std::size_t kPulledPiece = 16 << 10;
// Up to this size, a body that is held as a whole does not count: it is part of what a connection costs, and the usual
// small one writes to no memory that all connections share.
constexpr std::size_t kUncountedMax = kPulledPiece;
// What is reserved for a body of known length before it has arrived.
constexpr std::size_t kReservedMax = 1 << 20;

// The handler has called functions in the wrong order. The error ends like any exception of a handler: this
// request fails, no other.
void require(bool in_order, const char* otherwise) {
  if (!in_order) throw std::logic_error(otherwise);
}

// Whether a line "Name: value" is of that name.
bool names(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         equals_ignoring_case(line.substr(0, name.size()), name);
}

// Each its own function, and not a part of Exchange::run(), whose frame is below a handler that may wait for hours.
[[gnu::noinline]] void log_end(const Request& request, std::string_view of, std::string_view end,
                               std::string_view what) {
  static LogLimiter limiter(10);
  std::string line = "tuza: the ";
  line.append(of).append(request.method_name()).append(" ");
  detail::append_log_escaped(line, request.path().substr(0, 200));
  line.append(end);
  detail::append_log_escaped(line, what.substr(0, 1000));
  limiter.log(LogLevel::kError, line);
}

void log_exception(const Request& request, std::string_view what) {
  log_end(request, "handler of ", " has thrown: ", what);
}

[[gnu::noinline]] void log_error(const Request& request, const Error& error) {
  log_exception(request, error.message());
}

[[gnu::noinline]] void answer_with(const StatusError& error, ResponseWriter& writer) {
  writer.error(error.status(), std::string(error.what()) + "\n");
}

}  // namespace

Exchange::Outcome Exchange::run(const Handler& handler) {
  HandlerArgument<Request> request(*this);
  HandlerArgument<ResponseWriter> writer(*this);
  try {
    handler(*request, *writer);
    return Outcome::kReturned;
  } catch (const StatusError& e) {
    if (!response_.begun) {
      answer_with(e, *writer);
      return Outcome::kReturned;
    }
    log_end(*request, "response to ", " breaks off: ", e.what());
    thrown();
  } catch (const std::bad_expected_access<Error>& e) {
    if (needs_no_answer()) return Outcome::kReturned;
    log_error(*request, e.error());
    thrown();
  } catch (const std::exception& e) {
    log_exception(*request, e.what());
    thrown();
  } catch (...) {
    if (std::current_exception() == nullptr) throw;  // not a C++ exception: goexit()
    log_exception(*request, "an exception not derived from std::exception");
    thrown();
  }
  if (response_.begun) return Outcome::kThrownTooLate;
  response_.close = true;
  writer->error(500);
  return Outcome::kThrown;
}

void Exchange::report_thrown(std::string_view what) {
  log_exception(Request(*this), what);
  thrown();
}

bool Exchange::set_first_headers(std::string_view lines) {
  require(!response_.begun, "header fields are set after the response has begun");
  if (!buffers_->extra.empty()) return false;
  buffers_->extra = lines;
  return true;
}

// The function may still run when the request has ended: it shares the context.
struct Exchange::UntilShutdown {
  UntilShutdown(const std::shared_ptr<CancellableContext>& both, const Context& shutdown)
      : ctx(both->ctx()),
        registration(when_done(shutdown, [both, shutdown] { both->cancel(shutdown.cause()); })) {}
  Context ctx;
  WhenDone registration;
};

void Exchange::DropUntilShutdown::operator()(UntilShutdown* until) const { delete until; }

const Context& Exchange::until_shutdown() {
  if (contexts_.until_shutdown == nullptr) {
    contexts_.until_shutdown.reset(
        new UntilShutdown(std::make_shared<CancellableContext>(with_cancel(context())), server_shutdown()));
  }
  return contexts_.until_shutdown->ctx;
}

Result<HijackedStream> Exchange::hijack(int status) {
  require(!response_.begun && buffers_->body.empty(), "hijack() after the response has begun");
  if (status < 100 || status > 599) {
    throw std::invalid_argument("HTTP status out of range: " + std::to_string(status));
  }
  Result<HijackedStream> stream = hand_over();
  if (!stream) return stream;
  response_.status = status;
  response_.begun = response_.started = response_.finished = response_.close = true;
  return stream;
}

int Exchange::status_code() const {
  const int unreadable = response_.begun ? 0 : unreadable_status();
  return unreadable != 0 ? unreadable : response_.status;
}

std::uint64_t Exchange::bytes_written() const { return head_only() ? 0 : response_.written; }

void Exchange::set_status(int code) {
  require(!response_.begun, "status() after the response has begun");
  if (code < 200 || code > 599) {
    const char* const instead = code == 103 ? "; see early_hints()" : "";
    throw std::invalid_argument("HTTP status out of range: " + std::to_string(code) + instead);
  }
  response_.status = code;
}

void Exchange::add_header(std::string_view name, std::string_view value) {
  require(!response_.begun, "add_header() after the response has begun");
  require_field(name, value);
  if (lies_in(name, buffers_->extra) || lies_in(value, buffers_->extra)) [[unlikely]]
    return add_header(std::string(name), std::string(value));
  if (equals_ignoring_case(name, "Transfer-Encoding") || equals_ignoring_case(name, "Connection")) {
    throw std::invalid_argument(std::string(name) + " is set by the server");
  }
  if (equals_ignoring_case(name, "Content-Length")) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc{} || end != value.data() + value.size()) {
      throw std::invalid_argument("malformed Content-Length");
    }
    response_.declared_length = length;
    return;
  }
  note_header(name);
  append_field_line(buffers_->extra, name, value);
}

void Exchange::note_header(std::string_view name) {
  response_.has_content_type = response_.has_content_type || equals_ignoring_case(name, "Content-Type");
  response_.has_date = response_.has_date || equals_ignoring_case(name, "Date");
  response_.has_server = response_.has_server || equals_ignoring_case(name, "Server");
}
void Exchange::offer_upgrade(std::string_view protocols) {
  append_field_line(buffers_->extra, "Upgrade", protocols);
  append_field_line(buffers_->extra, "Connection", "Upgrade");
}

void Exchange::add_trailer(std::string_view name, std::string_view value) {
  require(!response_.finished || !response_.started, "add_trailer() after the response was complete");
  require_field(name, value);
  if (!may_be_trailer(name)) throw std::invalid_argument(std::string(name) + " cannot be a trailer");
  append_field_line(buffers_->trailers, name, value);
}

Result<void> Exchange::early_hints(std::string_view link) {
  require(!response_.begun, "early_hints() after the response has begun");
  add_header("Link", link);
  std::string line;
  append_field_line(line, "Link", link);
  return send_interim(103, line, nullptr);
}

// RFC 9110 15.2: a client of HTTP/1.0 knows none.
Result<void> Exchange::send_interim(int status, std::string_view lines, const Context* ctx) {
  if (response_.begun || buffers_->head.version_minor == 0) return {};
  return send_interim_head(status, lines, ctx);
}

void Exchange::set_header(std::string_view name, std::string_view value) {
  if (lies_in(name, buffers_->extra) || lies_in(value, buffers_->extra)) [[unlikely]]
    return set_header(std::string(name), std::string(value));
  if (equals_ignoring_case(name, "Vary")) return set_vary(value);
  remove_header(name);
  add_header(name, value);
}

// What middleware has put there stays true whatever the handler adds.
void Exchange::set_vary(std::string_view value) {
  std::string all(value);
  for (const HeaderField field : HeaderLines(buffers_->extra)) {
    if (!equals_ignoring_case(field.name, "Vary")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const std::string_view item = take_item(rest, ',');
      if (!item.empty() && !varies_by(all, item)) all.append(all.empty() ? "" : ", ").append(item);
    }
  }
  remove_header("Vary");
  add_header("Vary", all);
}

void Exchange::remove_header(std::string_view name) {
  require(!response_.begun, "a header field is set after the response has begun");
  if (equals_ignoring_case(name, "Content-Length")) response_.declared_length.reset();
  std::string& extra = buffers_->extra;
  for (std::size_t at = 0; at < extra.size();) {
    const std::size_t size = extra.find("\r\n", at) + 2 - at;
    if (!names(std::string_view(extra).substr(at, size), name)) {
      at += size;
      continue;
    }
    extra.erase(at, size);
    if (equals_ignoring_case(name, "Content-Type")) response_.has_content_type = false;
    if (equals_ignoring_case(name, "Date")) response_.has_date = false;
    if (equals_ignoring_case(name, "Server")) response_.has_server = false;
  }
}

std::optional<std::string_view> Exchange::response_header(std::string_view name) {
  for (const HeaderField field : HeaderLines(buffers_->extra)) {
    if (equals_ignoring_case(field.name, name)) return field.value;
  }
  if (response_.declared_length && equals_ignoring_case(name, "Content-Length")) {
    constexpr std::size_t kDigitsMax = 20;
    auto* const text = static_cast<char*>(buffers_->arena().allocate(kDigitsMax, 1));
    const auto [end, error] = std::to_chars(text, text + kDigitsMax, *response_.declared_length);
    (void)error;
    return std::string_view(text, static_cast<std::size_t>(end - text));
  }
  return std::nullopt;
}

void Exchange::drop_prepared_response() {
  const bool close = response_.close;
  response_ = Response{};
  response_.close = close;
  buffers_->extra.clear();
  buffers_->trailers.clear();
  buffers_->body.clear();
}

void Exchange::drop_prepared_body() {
  Response kept;
  kept.has_date = response_.has_date;
  kept.has_server = response_.has_server;
  kept.close = response_.close;
  response_ = kept;
  drop_fields_of_body(buffers_->extra);
  buffers_->trailers.clear();
  buffers_->body.clear();
}

void Exchange::send_whole(std::string_view content_type, std::string_view body) {
  require(!response_.begun && buffers_->body.empty(), "send() after the response has begun");
  if (lies_in(content_type, buffers_->extra)) [[unlikely]]
    return send_whole(std::string(content_type), body);
  if (!response_.has_content_type && body_allowed()) {
    require_one_line("Content-Type", content_type);
    append_field_line(buffers_->extra, "Content-Type", content_type);
    response_.has_content_type = true;
  }
  response_.begun = response_.finished = true;
  response_.declared_length = response_.written = body.size();
  if (head_only()) return;
  if (body.size() <= kHeldBackMax) {
    buffers_->body += body;  // to nothing: appending costs less than assigning
    return;
  }
  if (filter_ != nullptr || head_hook_ != nullptr) [[unlikely]] {
    response_.begun = false;  // they may still set fields
    begin_stream(&kServerLimits);
    if (head_only()) return;
  } else {
    start(sends_trailers() ? std::nullopt : std::optional<std::uint64_t>(body.size()));
  }
  if (filter_ == nullptr) response_.finished = !sends_trailers();  // the end of the chunks is still to come
  (void)send_piece(body, &kServerLimits);
}

Result<void> Exchange::write_body(std::string_view data, const Context* ctx) {
  require(!response_.finished, "write() after the response was complete");
  if (broken()) return std::unexpected(Error(Errc::kClosed, "write"));
  response_.written += data.size();
  require(!response_.declared_length || response_.written <= *response_.declared_length,
          "write() exceeds Content-Length");
  if (head_only() || data.empty()) return {};
  if (!response_.started) {
    if (buffers_->body.size() + data.size() <= kHeldBackMax) {
      buffers_->body += data;
      return {};
    }
    begin_stream(ctx);
    if (head_only()) return {};  // a hook has set another status
  }
  return send_piece(data, ctx);
}

// Gives the carrier the head, followed by the body data held back so far.
void Exchange::begin_stream(const Context* ctx) {
  for (detail::HeadHook* hook = head_hook_; hook != nullptr; hook = hook->before_) hook->call();
  if (filter_ != nullptr && !filter_->begin()) filter_ = nullptr;
  response_.begun = true;
  start(filter_ != nullptr || sends_trailers() ? std::nullopt : response_.declared_length);
  if (!buffers_->body.empty() && !head_only()) (void)send_piece(buffers_->body, ctx);
  buffers_->body.clear();
}

Result<void> Exchange::send_piece(std::string_view data, const Context* ctx) {
  if (filter_ != nullptr) [[unlikely]]
    return filter_->write(data, false, ctx);
  return send(data, ctx);
}

Result<void> Exchange::flush_response(const Context* ctx) {
  if (!response_.started) begin_stream(ctx);
  if (filter_ != nullptr && !head_only() && !broken()) {
    if (const Result<void> flushed = filter_->write({}, true, ctx); !flushed) return flushed;
  }
  return send_all(ctx);
}

void Exchange::raise_body_limit(std::uint64_t bytes_max) {
  body_bytes_max_ = std::max(body_bytes_max_, bytes_max);
  if (!too_large_ || buffers_->head.content_length > body_bytes_max_) return;
  too_large_ = false;
  accept_body();
}

Result<void> Exchange::hold_body(std::size_t bytes) {
  if (bodies_ == nullptr || bytes <= kUncountedMax || bytes <= held_bytes_) return {};
  if (bodies_->try_take(bytes - held_bytes_)) {
    held_bytes_ = bytes;
    return {};
  }
  constexpr BadRequest kTooMany{503, "too many request bodies at once", 0};
  refuse_body(kTooMany);
  return std::unexpected(Error(Errc::kOther, "read body", std::string(kTooMany.text)));
}

void Exchange::give_body_back() { bodies_->give_back(std::exchange(held_bytes_, 0)); }

Result<std::string_view> Exchange::pull_body(const Context* ctx) {
  const RequestHead& head = buffers_->head;
  std::string& pulled = buffers_->pulled;
  const std::uint64_t expected = head.chunked ? 0 : head.content_length;
  if (expected > pulled.capacity()) pulled.reserve(std::min<std::uint64_t>(expected, kReservedMax));
  for (;;) {
    const std::size_t had = pulled.size();
    // One byte at least: the carrier says when the body has ended.
    const std::uint64_t most = head.chunked ? Input::kReadBytes : expected > had ? expected - had : 1;
    const std::size_t wanted = had + static_cast<std::size_t>(std::min<std::uint64_t>(most, kPulledPiece));
    // The byte behind the announced length never comes.
    const bool has_all = !head.chunked && had == expected;
    if (const Result<void> may = hold_body(has_all ? had : wanted); !may) return std::unexpected(may.error());
    pulled.resize(wanted);
    const Result<std::size_t> n = take_body(std::as_writable_bytes(std::span(pulled).subspan(had)), ctx);
    pulled.resize(had + n.value_or(0));
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return std::string_view(pulled);
  }
}

}  // namespace tuza::http
