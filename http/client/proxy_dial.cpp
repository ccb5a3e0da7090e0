#include <tuza/http/client/proxy_dial.h>
#include <tuza/netpoll/dial.h>

#include <tuza/http/client/socks5.h>
#include <tuza/http/serve/pooled_read.h>
#include <tuza/http/status.h>
#include <tuza/http/wire/framing.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/errorf.h>

#include <string>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kAnswerBytesMax = 16 << 10;
constexpr int kInterimAnswersMax = 4;

Error bad_answer(std::string_view why) { return {Errc::kBadMessage, "connect", std::string(why)}; }

// The head that answers CONNECT.
class TunnelAnswer {
 public:
  // Its status. What comes behind a head that opens the tunnel would be the server's, but the client speaks first in TLS.
  Result<int> read(const Context& ctx, net::Conn& conn);

 private:
  Result<void> read_head(const Context& ctx, net::Conn& conn);

  ResponseHead head_;
  HeadParser parser_;
  Input input_;
};

Result<int> TunnelAnswer::read(const Context& ctx, net::Conn& conn) {
  for (int interim = 0; interim <= kInterimAnswersMax; ++interim) {
    if (Result<void> got = read_head(ctx, conn); !got) return std::unexpected(got.error());
    if (head_.status == 101) return std::unexpected(bad_answer("an upgrade that was not asked for"));
    if (head_.status / 100 == 2 && !input_.empty())
      return std::unexpected(bad_answer("more than the head of an answer"));
    if (head_.status >= 200) return head_.status;
    input_.end_request();
  }
  return std::unexpected(bad_answer("too many interim responses"));
}

Result<void> TunnelAnswer::read_head(const Context& ctx, net::Conn& conn) {
  const HeadLimits limits{
      .start_line_bytes = kAnswerBytesMax, .head_bytes = kAnswerBytesMax, .fields = kHeadersLimit};
  parser_.begin(head_, limits);
  for (;;) {
    if (!input_.empty()) {
      const std::size_t unread = input_.unread().size();
      const auto complete = parser_.feed_head(input_.request(), unread);
      if (!complete) return std::unexpected(bad_answer(complete.error().text));
      input_.consume(*complete ? head_.bytes - input_.request_bytes() : unread);
      if (*complete) break;
    }
    PooledRead read;
    const Result<std::size_t> n = net::detail::ConnParts::read(conn, read, &ctx);
    if (!n) return std::unexpected(n.error());
    if (*n == 0)
      return std::unexpected(Error(Errc::kEndOfStream, "connect", "closed before the end of an answer"));
    input_.append(read.bytes(*n));
  }
  const auto framed = frame_response(input_.request(), head_, Method::kConnect);
  if (!framed) return std::unexpected(bad_answer(framed.error().text));
  return {};
}

Result<void> open_tunnel(const Context& ctx, net::Conn& conn, const Proxy& proxy, const std::string& target) {
  std::string request = "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n";
  if (!proxy.authorization.empty()) request += "Proxy-Authorization: " + proxy.authorization + "\r\n";
  request += "\r\n";
  if (Result<void> sent = conn.write_all(ctx, request); !sent) return sent;
  const Result<int> status = TunnelAnswer().read(ctx, conn);
  if (!status) return std::unexpected(status.error());
  if (*status / 100 == 2) return {};
  const std::string answer = std::to_string(*status) + " " + std::string(reason_phrase(*status));
  if (*status != 407) return std::unexpected(errorf("connect {}: {}", target, answer));
  const char* why = proxy.credentials ? "it refuses the credentials" : "it asks for credentials";
  return std::unexpected(Error::from_text(std::make_error_code(std::errc::permission_denied),
                                          "connect " + target + ": " + answer + ": " + why));
}

}  // namespace

Result<net::Conn> dial_through(const Context& ctx, const Proxy& proxy, const Url& url, bool forwarded) {
  Result<net::Conn> conn = net::dial(ctx, "tcp", proxy.address);
  Result<void> open;
  if (conn && !forwarded) {
    open = proxy.kind == Proxy::Kind::kHttp ? open_tunnel(ctx, *conn, proxy, url.address())
                                            : connect_by_socks5(ctx, *conn, proxy, url);
  }
  if (conn && open) return conn;
  return std::unexpected(errorf("proxy {}: {}", proxy.address, conn ? open.error() : conn.error()));
}

}  // namespace tuza::http
