// One request of a client and its response, over one connection.
//
//     send the request -> skip interim heads (1xx) -> the response's head -> its body -> the connection goes back
//                                                                              `-> decoded, if we asked for compression
//
// A request that fits into one write is sent first. Any other body is sent by a goroutine of its own, while this one waits
// for the answer: a server may answer before it has read everything, and would wait for us while we wait for it. The answer
// ends the sending of a source, whose memory is the caller's, and then the connection, too; with keep_sending(), and for a text,
// the end of the answer does.
//
// Exchanges grow with the response, and are cached per P, as those of the server (http/serve/exchange_buffers.h): a kept
// connection has none.
//
// Thread-unsafe: owned by a call of Client, then by the response. Every call that talks parks.
#pragma once

#include <tuza/http/client/body_sending.h>
#include <tuza/http/client/pool.h>
#include <tuza/http/client/state.h>
#include <tuza/http/codec/coded_body.h>
#include <tuza/http/wire/body_reader.h>
#include <tuza/http/wire/chunk_decoder.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/sched/rt/memory/per_p_cache.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http {

class RequestSender;

class ClientExchange : public rt::CacheNode {
 public:
  static ClientExchange* take();
  // Of an unread body, what has arrived already is skipped; if that is not all, the connection is closed.
  static void give_back(ClientExchange* exchange);

  // `ctx` and `deadline` count until the end of the body.
  void begin(std::shared_ptr<ClientState> state, const Context& ctx, net::TimePoint deadline);
  // Ends the context of this canceller when the response ends.
  void hold(Canceller canceller) { held_ = std::move(canceller); }
  // Sends the request over the connection of `lease`, and reads the head of the response. After an error the connection is
  // closed.
  [[nodiscard]] Result<void> run(ClientPool::Lease lease, const Hop& hop);
  // Whether a byte of an answer has come; without one, the server may not have seen the request.
  [[nodiscard]] bool answered() const { return answered_; }

  // The rest of the body must come within this time.
  void hurry(std::chrono::milliseconds time) { deadline_ = sooner(deadline_, time); }

  // -- For ClientResponse, after run().
  [[nodiscard]] const ResponseHead& head() const { return head_; }
  [[nodiscard]] const char* base() const { return base_; }
  [[nodiscard]] const Url& url() const { return url_; }
  [[nodiscard]] const ClientOptions& options() const { return state_->options(); }
  // As error_of_request().
  [[nodiscard]] Error named(const Error& error) const;
  [[nodiscard]] bool decompresses() const { return coding_.has_value(); }
  // Whether a call of read_received() would wait for the server.
  [[nodiscard]] bool would_wait();
  [[nodiscard]] std::string_view trailers() const;
  [[nodiscard]] Result<std::size_t> read_body(std::span<std::byte> into);
  // The body as the server has sent it.
  [[nodiscard]] Result<std::size_t> read_received(std::span<std::byte> into);
  // The same, and what has arrived only: 0 at the end, and where read_received() may have to wait.
  [[nodiscard]] Result<std::size_t> read_now(std::span<std::byte> into);
  // The whole body, if it has arrived together with the head and is not decoded; valid as long as this. Otherwise empty, and
  // nothing is taken.
  [[nodiscard]] std::string_view take_whole_body();
  [[nodiscard]] Result<HijackedStream> hijack();
  // The connection, if the rest of the body is what will arrive there next, up to body_remaining() bytes, and nobody here needs
  // to see it; otherwise null. What is taken out of it is to be told.
  [[nodiscard]] net::Conn* bare_body();
  [[nodiscard]] Result<void> wait_for_bare_body();
  [[nodiscard]] std::uint64_t body_remaining() const { return body_.remaining(); }
  void took_body(std::uint64_t bytes);
  // The rest of the body is waited for under this context, which descends from the one before: the caller's, or middleware's.
  [[nodiscard]] const Context& context() const { return ctx_; }
  void read_under(const Context& ctx) { ctx_ = ctx; }
  // An error of that connection; all further reads of the body fail with it.
  std::unexpected<Error> fail(Error error);

 private:
  [[nodiscard]] Result<void> talk(const Hop& hop);
  [[nodiscard]] Result<void> send_whole(RequestSender& sender);
  [[nodiscard]] Result<void> send_beside(RequestSender& sender, bool keeps_sending);
  Result<bool> end_sending();
  [[nodiscard]] Result<bool> read_go_ahead();
  [[nodiscard]] Result<void> read_final_head();
  [[nodiscard]] Result<void> take_interim();
  [[nodiscard]] Result<bool> read_head();
  [[nodiscard]] Result<std::size_t> receive();
  [[nodiscard]] Result<bool> feed();
  [[nodiscard]] Result<void> frame();
  [[nodiscard]] net::TimePoint head_deadline() const;
  void limit_writes(net::TimePoint deadline);
  void limit_body_read();
  [[nodiscard]] std::span<std::byte> with_one_behind(std::span<std::byte> into) const;
  std::size_t took_directly(std::size_t n, std::span<std::byte> into);
  void begin_body();
  void begin_decoding();
  void finish();
  void skip_rest();
  [[nodiscard]] net::Conn& conn() { return lease_->conn(); }
  [[nodiscard]] bool is_final() const { return head_.status >= 200 || head_.status == 101; }

  std::shared_ptr<ClientState> state_;
  Context ctx_;
  Canceller held_;
  net::TimePoint deadline_{};
  HeadLimits limits_;
  Url url_;
  std::optional<ClientPool::Lease> lease_;  // until the end of the body
  std::optional<BodySending> sending_;      // a body that needs more than one write; ends before the lease
  Method asked_{};
  ClientRequest* asking_ = nullptr;  // the caller's; null once the head of the response is there
  bool answered_ = false;
  std::string asked_upgrade_;  // empty: none
  bool offered_codings_ = false;
  bool head_begun_ = false;
  int interim_ = 0;              // heads before the final one
  bool reusable_ = false;        // the whole request has been sent, and a head has answered it
  bool followed_ = false;        // a byte behind the body has been read
  bool cut_off_ = false;         // the answer has ended the sending of a source
  std::optional<Error> failed_;  // every further read of the body fails with it

  const char* base_ = nullptr;
  ResponseHead head_;
  HeadParser parser_;
  BodyReader body_;
  ChunkDecoder chunks_;
  std::optional<Coding> coding_;             // of a body that is decoded
  std::unique_ptr<CodedBody> decompressed_;  // since the first read of such a body
  std::string out_;
  Input input_;
};

}  // namespace tuza::http
