#include <tuza/http/proxy/pass_back.h>

#include <tuza/http/client/exchange.h>
#include <tuza/http/client/response_error.h>
#include <tuza/http/proxy/passed_fields.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/http/wire/input.h>
#include <tuza/netpoll/copy.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

// Of a long body; the rest goes by splice(2), which costs more than copying below some 64 KiB.
constexpr std::size_t kPassedPiece = 32 << 10;
constexpr std::size_t kCopiedMax = 64 << 10;

// 0: there is no body. One byte more than a short one: see ClientExchange::with_one_behind().
std::size_t piece_of(const ClientResponse& answer) {
  const std::uint64_t length = answer.content_length().value_or(kPassedPiece);
  if (length == 0) return 0;
  return length <= kCopiedMax ? static_cast<std::size_t>(length) + 1 : kPassedPiece;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The length of a body that goes nowhere is only known from its field.
void set_length(Request& req, ResponseWriter& res, const ClientResponse& answer) {
  if (req.method() == Method::kHead) {
    const std::optional<std::string_view> length = answer.header("Content-Length");
    if (length) return res.set_header("Content-Length", *length);
    return req.exchange().forget_length();
  }
  if (const auto length = answer.content_length()) req.exchange().declare_length(*length);
}

// What has been written goes out before a wait for more: a stream of events is of no use otherwise. A head alone waits for
// the body that it announces.
bool flush_before_wait(const Request& req, ResponseWriter& res, ClientResponse& answer, HeldUp& held_up) {
  if (!answer.exchange().would_wait()) return true;
  if (answer.content_length() && res.bytes_written() == 0) return true;
  const HeldUp::Wait wait(held_up);
  return res.flush(req.context()).has_value();
}

Result<void> write_piece(const Request& req, ResponseWriter& res, std::string_view piece, HeldUp& held_up) {
  const HeldUp::Wait wait(held_up);
  return res.write(req.context(), piece);
}

// A splice waits for the side that it writes to only.
net::Spliced splice_piece(Request& req, net::Conn& from, std::uint64_t most, HeldUp& held_up) {
  const HeldUp::Wait wait(held_up);
  return req.exchange().splice_body(from, most, req.context());
}

// Passes on more of a long body by splice(2), as long as it arrives in large portions. False: the client has gone.
Result<bool> splice_more(Request& req, ClientResponse& answer, HeldUp& held_up) {
  ClientExchange& upstream = answer.exchange();
  while (net::Conn* const from = upstream.bare_body()) {
    const net::Spliced spliced = splice_piece(req, *from, upstream.body_remaining(), held_up);
    upstream.took_body(spliced.bytes);
    if (spliced.read_error) return upstream.fail(*spliced.read_error);
    if (spliced.write_error) return false;
    if (spliced.bytes < kPassedPiece || upstream.bare_body() == nullptr) break;
    if (const Result<void> ready = upstream.wait_for_bare_body(); !ready)
      return std::unexpected(ready.error());
  }
  return true;
}

// Waits for some of the body, and takes what has arrived by then. 0: its end.
Result<std::size_t> read_piece(ClientResponse& answer, std::span<std::byte> into) {
  Result<std::size_t> all = answer.read(into);
  for (std::size_t n = all.value_or(0); n > 0 && *all < into.size(); *all += n)
    n = answer.exchange().read_now(into.subspan(*all)).value_or(0);  // an error shows again in the next read
  return all;
}

Result<void> pass_body(Request& req, ResponseWriter& res, ClientResponse& answer, HeldUp& held_up) {
  if (const std::string_view whole = answer.exchange().take_whole_body(); !whole.empty()) {
    (void)write_piece(req, res, whole, held_up);
    return {};
  }
  const std::size_t size = piece_of(answer);
  if (size == 0) return {};
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
  const std::span<std::byte> room(memory.get(), size);
  for (;;) {
    if (!flush_before_wait(req, res, answer, held_up)) return {};  // the client has gone
    const Result<std::size_t> n = read_piece(answer, room);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return {};
    if (!write_piece(req, res, as_text(room.first(*n)), held_up)) return {};
    if (*n < size) continue;
    const Result<bool> goes_on = splice_more(req, answer, held_up);
    if (!goes_on) return std::unexpected(goes_on.error());
    if (!*goes_on) return {};
  }
}

bool is_event_stream(const ClientResponse& answer) {
  const std::string_view type = answer.header("Content-Type").value_or("");
  return equals_ignoring_case(trim(type.substr(0, type.find(';'))), "text/event-stream");
}

// Of a body that goes on for ever: its client connects anew when it ends, so a shutdown need not wait.
Result<void> pass_events(Request& req, ResponseWriter& res, ClientResponse& answer, HeldUp& held_up) {
  const Context whole = answer.exchange().context();
  const Context shutdown = req.exchange().server_shutdown();
  // The function may still run when the stream has ended: it shares the context.
  const auto both = std::make_shared<CancellableContext>(with_cancel(whole));
  const WhenDone at_shutdown = when_done(shutdown, [both, shutdown] { both->cancel(shutdown.cause()); });
  answer.exchange().read_under(both->ctx());
  Result<void> passed = pass_body(req, res, answer, held_up);
  if (!passed && shutdown.done() && !whole.done()) return {};
  return passed;
}

}  // namespace

void pass_interim(Request& req, int status, const ReceivedHeaders& headers, HeldUp& held_up) {
  const HopFields hop(headers);
  std::string lines;
  for (const auto& [name, value] : headers) {
    if (!hop.contains(name)) append_field_line(lines, name, value);
  }
  const HeldUp::Wait wait(held_up);
  (void)req.exchange().send_interim(status, lines, &req.context());
}

Result<void> pass_back(Request& req, ResponseWriter& res, ClientResponse& answer,
                       const ReverseProxyOptions& options, HeldUp& held_up) {
  if (answer.status() > 599) return std::unexpected(response_error(Errc::kBadMessage, "status out of range"));
  res.status(answer.status());
  pass_fields(answer, req.exchange());
  if (answer.status() == 426) {
    const std::string protocols = protocols_among(answer.headers(), options.upgrades);
    if (!protocols.empty()) req.exchange().offer_upgrade(protocols);
  }
  set_length(req, res, answer);
  if (options.on_response) options.on_response(answer, res);
  Result<void> passed =
      is_event_stream(answer) ? pass_events(req, res, answer, held_up) : pass_body(req, res, answer, held_up);
  if (!passed) return passed;
  for (const auto& [name, value] : answer.trailers()) {
    if (may_be_trailer(name)) res.add_trailer(name, value);
  }
  return {};
}

Result<void> pass_tunnel(Request& req, ResponseWriter& res, ClientResponse& answer,
                         const ReverseProxyOptions& options) {
  const std::string_view protocol = answer.header("Upgrade").value_or("");
  if (!lists(req.headers(), "Upgrade", protocol))
    return std::unexpected(response_error(Errc::kBadMessage, "an upgrade to another protocol"));
  const Context shutdown = req.exchange().server_shutdown();
  if (shutdown.done()) {  // which would end the tunnel at once; a client that gets 503 asks elsewhere
    res.close();
    res.error(503);
    return {};
  }
  pass_fields(answer, req.exchange());
  std::string first = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
  first.append("Upgrade: ").append(protocol).append("\r\n");
  first.append(req.exchange().buffers().extra).append("\r\n");
  Result<HijackedStream> upstream = answer.hijack();
  if (!upstream) return std::unexpected(upstream.error());
  Result<HijackedStream> client = res.hijack(101);
  if (!client) {
    if (!client.error().closed()) res.error(501);  // there is no connection to hand over, as in a test
    return {};
  }
  // Either side may have said something already.
  first.append(upstream->received().unread());
  if (!client->write(first)) return {};
  if (!upstream->write(client->received().unread())) return {};
  (void)net::relay(shutdown, client->conn(), upstream->conn(),
                   {.idle_timeout = options.upgrade_idle_timeout});
  return {};
}

}  // namespace tuza::http
