// The working set of one busy connection: buffers, parser, the request in progress.
//
// A connection has one only from the first byte of a request to the last byte of its response; an idle connection has none.
// It takes some 3 KB at first, and grows with the request: a handler may wait for hours, beside 10,000 others. Working sets
// are cached per P, last in, first out: a core serves one request after another from the same memory, which has grown to
// what these need, and stays in its cache; nothing is allocated.
//
// Thread-unsafe: owned by the goroutine that has taken it.
#pragma once

#include <tuza/http/wire/chunk_decoder.h>
#include <tuza/http/wire/date.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/rt/memory/per_p_cache.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct ExchangeBuffers : rt::CacheNode {
  static ExchangeBuffers* take();
  // Discards the content of `out`.
  static void give_back(ExchangeBuffers* buffers);

  Input input;
  HeadParser parser;
  ChunkDecoder chunks;  // of the body, if it is chunked; then its trailers
  RequestHead head;
  const char* head_base = nullptr;  // where the bytes of a complete head begin

  // The path segment matched by a wildcard of the pattern; stays percent-encoded until it is first requested.
  struct PathValue {
    std::string_view name, value;
    bool decoded = false;
  };
  static constexpr std::size_t kPathValuesMax = 16;
  std::vector<PathValue> path_values;
  std::uint32_t mounted_bytes = 0;  // what Router::mount() has cut off in front of head.path
  std::string_view pattern;         // of the router that has chosen the handler; empty: none has

  // Takes the place of the connection's peer for the rest of the request (middleware/real_ip.h).
  struct Client {
    net::Endpoint endpoint;
    std::string text;
  };
  std::optional<Client> client;

  // Memory for text made for the handler (decoded values), valid until the request has ended.
  [[nodiscard]] std::pmr::memory_resource& arena() {
    arena_used_ = true;
    return arena_;
  }

  std::string out;  // output to be sent; collects responses to pipelined requests
  // See early_sending.h.
  enum class Early : std::uint8_t { kNo, kDue, kSends };
  std::atomic<Early> early{Early::kNo};
  bool sent_early = false;  // and over TLS a rest may wait there for the next write
  std::string extra;        // header fields set by the handler
  std::string trailers;     // fields behind a chunked response, set by the handler
  std::string body;         // written by the handler, while the head may still change
  std::string pulled;       // the request's body, if the handler asked for all of it
  Date date;

  // Makes room for the next request on the same connection.
  void end_request();

 private:
  std::array<std::byte, 256> arena_bytes_;
  std::pmr::monotonic_buffer_resource arena_{arena_bytes_.data(), arena_bytes_.size()};
  bool arena_used_ = false;
};

}  // namespace tuza::http
