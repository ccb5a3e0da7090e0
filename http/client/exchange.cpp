#include <tuza/http/client/exchange.h>

#include <tuza/http/client/request_sender.h>
#include <tuza/http/client/response_error.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/serve/pooled_read.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/list.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/errorf.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

using namespace std::chrono_literals;

rt::PerPCache& exchange_cache() {
  static rt::PerPCache instance;
  return instance;
}

// What an exchange keeps of a large request.
constexpr std::size_t kKeptOutBytes = 64 << 10;
// A server that sends interim heads without end would keep the client for ever.
constexpr int kInterimMax = 16;
constexpr std::size_t kChunkOverheadMax = 64 << 10;

Error bad_response(const ParseError& error) { return response_error(Errc::kBadMessage, error.text); }

bool is_listed(std::string_view item, std::string_view list) {
  while (!list.empty()) {
    if (equals_ignoring_case(take_item(list, ','), item)) return true;
  }
  return false;
}

// RFC 9110 7.8: whether the server goes on with protocols that it was asked for, and with no other.
bool is_upgrade(std::string_view asked, const ReceivedHeaders& answer) {
  bool named = false, all_asked_for = true;
  each_element(answer, "Upgrade", [&](std::string_view protocol) {
    named = true;
    all_asked_for = all_asked_for && is_listed(protocol, asked);
  });
  return named && all_asked_for;
}

Error cut_off(const char* where) { return response_error(Errc::kEndOfStream, where); }

}  // namespace

ClientExchange* ClientExchange::take() {
  if (rt::CacheNode* node = exchange_cache().take(); node != nullptr)
    return static_cast<ClientExchange*>(node);
  return new ClientExchange;
}

void ClientExchange::give_back(ClientExchange* exchange) {
  exchange->sending_.reset();
  exchange->skip_rest();
  exchange->lease_.reset();
  exchange->state_.reset();
  exchange->ctx_ = Context();
  exchange->held_ = Canceller();
  exchange->failed_.reset();
  exchange->decompressed_.reset();
  exchange->chunks_.drop_trailers();
  exchange->input_.consume(exchange->input_.unread().size());
  exchange->input_.end_request();
  if (exchange->out_.capacity() > kKeptOutBytes) std::string().swap(exchange->out_);
  if (!exchange_cache().put(exchange) && !exchange_cache().put_surplus(exchange)) delete exchange;
}

void ClientExchange::begin(std::shared_ptr<ClientState> state, const Context& ctx, net::TimePoint deadline) {
  state_ = std::move(state);
  ctx_ = ctx;
  deadline_ = deadline;
  limits_ = {.start_line_bytes = options().head_bytes_max,
             .head_bytes = options().head_bytes_max,
             .fields = options().headers_max};
  answered_ = head_begun_ = reusable_ = followed_ = cut_off_ = false;
  interim_ = 0;
  coding_.reset();
  body_.begin();
}

Result<void> ClientExchange::run(ClientPool::Lease lease, const Hop& hop) {
  lease_ = std::move(lease);
  url_ = hop.url();
  asked_ = hop.method;
  asking_ = &hop.request;
  asked_upgrade_ = hop.upgrade;
  offered_codings_ = hop.offers_codings;
  limit_writes(deadline_);
  Result<void> talked = talk(hop);
  asking_ = nullptr;  // the request may end before the response
  if (!talked) {
    lease_.reset();
    return talked;
  }
  begin_body();
  return {};
}

// One replaces the other: a deadline, also of what may stall, or the time of each wait.
void ClientExchange::limit_writes(net::TimePoint deadline) {
  const bool waits = deadline == net::kNoDeadline;
  conn().set_write_deadline(waits ? deadline : sooner(deadline, options().stall_timeout));
  conn().set_write_timeout(waits ? options().stall_timeout : 0ms);
}

void ClientExchange::limit_body_read() {
  conn().set_read_deadline(sooner(deadline_, options().stall_timeout));
}

Result<void> ClientExchange::talk(const Hop& hop) {
  RequestSender sender(conn(), hop, options(), out_);
  if (hop.asks_first) {
    if (Result<void> sent = sender.send_head(ctx_); !sent) return sent;
    const net::TimePoint until = std::min(deadline_, net::time_after_now(options().continue_timeout));
    conn().set_read_deadline(until);
    const Result<bool> refused = read_go_ahead();
    if (!refused) return std::unexpected(refused.error());
    if (*refused) return {};  // the server may still wait for the body
  }
  return sender.fits_one_write() ? send_whole(sender) : send_beside(sender, hop.request.keeps_sending());
}

// A server may refuse a request, and close, before it has read it: its answer counts for more than the failed write.
Result<void> ClientExchange::send_whole(RequestSender& sender) {
  const Result<void> sent = sender.send_body(ctx_);
  if (!sent && (sent.error().timeout() || ctx_.done())) return sent;
  conn().set_read_deadline(head_deadline());
  Result<void> got = read_final_head();
  reusable_ = got && sent;
  return got || sent ? got : sent;
}

// Sends in a goroutine of its own, until the answer is there, or until it has been read. A server that refuses or redirects has no
// use for the rest.
Result<void> ClientExchange::send_beside(RequestSender& sender, bool keeps_sending) {
  sender.begin_body();
  const bool own = sender.let_go_of_request();
  limit_writes(net::kNoDeadline);  // deadline_ ends the read below, and with it the sending
  sending_.emplace(sender, conn(), ctx_,
                   BodySending::Limits{.deadline = deadline_, .head_timeout = options().head_timeout});
  if (Result<void> begun = sending_->begin(); !begun) {
    sending_.reset();
    return begun;
  }
  Result<void> got = read_final_head();
  sending_->head_arrived();
  const bool wanted = got && head_.status / 100 == 2;
  const bool ends = !got || head_.status == 101;  // what follows is of another protocol
  if (!ends && (keeps_sending || (own && wanted))) {
    sending_->goes_on_beside();
    return got;
  }
  const Result<bool> whole = end_sending();
  if (!whole) return std::unexpected(whole.error());
  reusable_ = got && *whole;
  cut_off_ = wanted && !*whole;
  return got;
}

// Whether the whole request has been sent; the error of its source.
Result<bool> ClientExchange::end_sending() {
  const bool whole = sending_->end();
  const std::exception_ptr thrown = sending_->thrown();
  const std::optional<Error> error = sending_->source_error();
  sending_.reset();
  if (thrown) std::rethrow_exception(thrown);
  if (error) return std::unexpected(*error);
  return whole;
}

net::TimePoint ClientExchange::head_deadline() const { return sooner(deadline_, options().head_timeout); }

// Whether the final head has arrived instead of "100 Continue", or of the time to wait for that.
Result<bool> ClientExchange::read_go_ahead() {
  for (;;) {
    const Result<bool> got = read_head();
    if (!got || !*got) return got;
    if (is_final()) return true;
    if (head_.status == 100) return false;
  }
}

Result<void> ClientExchange::read_final_head() {
  for (;;) {
    const Result<bool> got = read_head();
    if (!got) return std::unexpected(got.error());
    if (!*got) return std::unexpected(response_error(Errc::kTimeout, "no answer in time"));
    if (is_final()) return {};
  }
}

Result<void> ClientExchange::take_interim() {
  if (++interim_ > kInterimMax)
    return std::unexpected(response_error(Errc::kBadMessage, "too many interim responses"));
  if (head_.status != 100 && asking_->on_interim_)
    asking_->on_interim_(head_.status, {head_, input_.request()});
  return {};
}

// The next head, interim or final. False: the read deadline has passed, and the head may go on to arrive.
Result<bool> ClientExchange::read_head() {
  if (!std::exchange(head_begun_, true)) parser_.begin(head_, limits_);
  for (;;) {
    if (!input_.empty()) {
      const Result<bool> complete = feed();
      if (!complete || *complete) return complete;
    }
    const Result<std::size_t> n = receive();
    if (!n && n.error().timeout() && !ctx_.done()) return false;
    if (!n) return std::unexpected(n.error());
    if (*n == 0)
      return std::unexpected(cut_off(answered_ ? "closed within the head" : "closed without an answer"));
    answered_ = true;
  }
}

// Memory for much that an earlier response has left behind need not be borrowed, and spares a copy.
Result<std::size_t> ClientExchange::receive() {
  if (const std::span<std::byte> spare = input_.spare(); spare.size() >= Input::kReadBytes) {
    const Result<std::size_t> n = conn().read(ctx_, spare);
    if (n) input_.filled(*n);
    return n;
  }
  PooledRead read;
  const Result<std::size_t> n = net::detail::ConnParts::read(conn(), read, &ctx_);
  if (n && *n > 0) input_.append(read.bytes(*n));
  return n;
}

Result<bool> ClientExchange::feed() {
  const std::size_t unread = input_.unread().size();
  const auto complete = parser_.feed_head(input_.request(), unread);
  if (!complete) return std::unexpected(bad_response(complete.error()));
  input_.consume(*complete ? head_.bytes - input_.request_bytes() : unread);
  if (!*complete) return false;
  head_begun_ = false;
  if (const auto framed = frame_response(input_.request(), head_, asked_); !framed)
    return std::unexpected(bad_response(framed.error()));
  // HTTP/1.0 knows no Upgrade.
  if (head_.status == 101 &&
      (head_.version_minor == 0 || !is_upgrade(asked_upgrade_, {head_, input_.request()})))
    return std::unexpected(response_error(Errc::kBadMessage, "an upgrade that was not asked for"));
  if (!is_final()) {
    const Result<void> taken = take_interim();
    input_.end_request();
    if (!taken) return std::unexpected(taken.error());
    return true;
  }
  input_.pin();
  base_ = input_.request();
  return true;
}

// After 101 the connection stays, for hijack().
void ClientExchange::begin_body() {
  if (head_.status == 101) {
    conn().set_write_timeout(0ms);
    return conn().set_deadline(net::kNoDeadline);
  }
  if (head_.chunked) {
    body_.begin_chunks(chunks_, kChunkOverheadMax);
  } else if (head_.until_close) {
    body_.begin_until_close();
  } else {
    body_.begin_length(head_.content_length);
  }
  if (body_.complete()) return finish();
  if (offered_codings_) begin_decoding();
}

// A coding that nobody has asked for is the caller's, as it would be without us.
void ClientExchange::begin_decoding() {
  const ContentEncoding encoding = content_encoding({head_, base_});
  const std::optional<Coding> known = encoding.coding ? coding_named(*encoding.coding) : std::nullopt;
  if (encoding.several) {
    (void)fail(response_error(Errc::kBadMessage, "a body that is coded more than once"));
  } else if (known) {
    coding_ = known;
    hide_coding(head_, base_);
  }
}

std::string_view ClientExchange::trailers() const {
  const bool all_read =
      body_.complete() && (!coding_ || (decompressed_ != nullptr && decompressed_->ended()));
  return all_read && body_.chunked() ? chunks_.trailers() : std::string_view();
}

// The body is complete. Bytes behind it are no answer to anything: whatever they are, the connection ends. So does one whose
// request is still being sent.
void ClientExchange::finish() {
  if (sending_) reusable_ = end_sending().value_or(false);
  const bool followed = followed_ || !input_.empty();
  const bool goes_on = reusable_ && head_.keep_alive && !followed && head_.status != 101;
  if (goes_on) lease_->keep();
  lease_.reset();
}

Error ClientExchange::named(const Error& error) const { return error_of_request(asked_, url_, error); }

Result<HijackedStream> ClientExchange::hijack() {
  if (head_.status == 101) return HijackedStream(conn(), input_);
  return std::unexpected(response_error(Errc::kBadMessage, "the server has not upgraded the connection"));
}

net::Conn* ClientExchange::bare_body() {
  const bool bare = lease_ && !failed_ && !coding_ && body_.remaining() > 0 && input_.empty();
  if (!bare || net::detail::ConnParts::transport(conn()) != nullptr) return nullptr;
  conn().set_read_deadline(deadline_);  // who splices waits for the other side, too
  return &conn();
}

Result<void> ClientExchange::wait_for_bare_body() {
  limit_body_read();
  const Result<void> ready = net::detail::ConnParts::descriptor(conn()).wait_for_data(&ctx_);
  if (!ready) return fail(ready.error());
  return {};
}

void ClientExchange::took_body(std::uint64_t bytes) {
  body_.took(bytes);
  if (bytes > 0 && body_.complete()) finish();
}

std::unexpected<Error> ClientExchange::fail(Error error) {
  if (sending_) {
    if (const Result<bool> whole = end_sending(); !whole) error = whole.error();
  }
  // The server may have waited for the rest of the request.
  if (cut_off_) error = errorf("{}, after its head has ended the request's body: see keep_sending()", error);
  failed_ = error;
  lease_.reset();
  return std::unexpected(std::move(error));
}

Result<std::size_t> ClientExchange::read_body(std::span<std::byte> into) {
  if (!coding_) return read_received(into);
  if (failed_) return std::unexpected(*failed_);
  if (decompressed_ == nullptr) {
    const CodedBody::Limits limits{.ratio_max = options().decompress_ratio_max};
    decompressed_ = std::make_unique<CodedBody>(*coding_, limits, "read response");
  }
  const Result<std::size_t> n =
      decompressed_->read(into, [this](std::span<std::byte> piece) { return read_received(piece); });
  return n || failed_ ? n : fail(n.error());
}

Result<std::size_t> ClientExchange::read_received(std::span<std::byte> into) {
  if (failed_) return std::unexpected(*failed_);
  while (!body_.complete() && !into.empty()) {
    const auto taken = body_.take(input_, into);
    if (!taken) return fail(bad_response(taken.error()));
    if (body_.complete()) finish();
    if (*taken > 0 || body_.complete()) return *taken;
    const bool direct = body_.reads_directly();
    limit_body_read();
    const Result<std::size_t> n = conn().read(ctx_, direct ? with_one_behind(into) : input_.space());
    if (!n) return fail(n.error());
    if (*n == 0) {
      if (!body_.end_of_stream()) return fail(cut_off("closed within the body"));
      finish();
    } else if (direct) {
      return took_directly(*n, into);
    } else {
      input_.filled(*n);
    }
  }
  return std::size_t{0};
}

Result<std::size_t> ClientExchange::read_now(std::span<std::byte> into) {
  if (failed_) return std::unexpected(*failed_);
  if (coding_ || body_.complete() || into.empty()) return std::size_t{0};
  const auto taken = body_.take(input_, into);
  if (!taken) return fail(bad_response(taken.error()));
  if (body_.complete()) finish();
  if (*taken > 0 || body_.complete()) return *taken;
  if (!body_.reads_directly() || net::detail::ConnParts::transport(conn()) != nullptr) return std::size_t{0};
  const Result<std::size_t> n = net::detail::ConnParts::descriptor(conn()).read_now(with_one_behind(into));
  if (!n && n.error().is(std::errc::operation_would_block)) return std::size_t{0};
  if (!n) return fail(n.error());
  if (*n == 0) return n;  // the end is there for read_received(), too
  return took_directly(*n, into);
}

// Room for one byte more than the body has, if there is: a read that does not fill its memory has seen all that there was, and
// the next request need not ask whether there is something.
std::span<std::byte> ClientExchange::with_one_behind(std::span<std::byte> into) const {
  return into.first(std::min(into.size(), body_.direct(into).size() + 1));
}

// Of what was read there, what belongs to the body.
std::size_t ClientExchange::took_directly(std::size_t n, std::span<std::byte> into) {
  const std::size_t own = std::min(n, body_.direct(into).size());
  if (own < n) followed_ = true;
  body_.took(own);
  if (body_.complete()) finish();
  return own;
}

std::string_view ClientExchange::take_whole_body() {
  const bool arrived = !failed_ && !coding_ && input_.unread().size() >= body_.remaining();
  if (!arrived || body_.remaining() == 0) return {};
  const std::string_view whole = input_.unread().substr(0, static_cast<std::size_t>(body_.remaining()));
  input_.consume(whole.size());
  took_body(whole.size());
  return whole;
}

// The end of a chunk may have arrived behind its data, and with it the end of the body.
bool ClientExchange::would_wait() {
  if (failed_ || body_.complete()) return false;
  (void)body_.take(input_, {});  // an error shows again in read_received()
  if (body_.complete()) finish();
  return !body_.complete() && !body_.has_data() && input_.empty();
}

// Without waiting.
void ClientExchange::skip_rest() {
  if (!lease_ || failed_) return;
  std::array<std::byte, 4096> scrap;
  for (;;) {
    const auto taken = body_.take(input_, scrap);
    if (!taken) return;
    if (body_.complete()) return finish();
    if (*taken == 0) return;
  }
}

}  // namespace tuza::http
