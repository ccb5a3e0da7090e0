// The working set of one connection that is busy: buffers, parser, the request in progress.
//
// About 20 KiB, so a connection has one only from the first byte of a request to the last byte of its
// response; an idle connection has none. They are kept per P and taken last in, first out: a core serves one
// request after another from the same memory, which stays in its cache, and nothing is allocated.
//
// Thread-unsafe: belongs to the goroutine that has taken it.
#pragma once

#include <tuza/http/wire/date.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/head_parser.h>
#include <tuza/http/wire/input.h>
#include <tuza/sched/rt/memory/per_p_cache.h>

#include <array>
#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>

namespace tuza::http {

struct ExchangeBuffers : rt::CacheNode {
  static ExchangeBuffers* take();
  // What is in `out` is dropped.
  static void give_back(ExchangeBuffers* buffers);

  Input input;
  HeadParser parser;
  Head head;
  const char* head_base = nullptr;  // where the bytes of a complete head are

  // What a pattern with wildcards has found in the path; percent-encoded until somebody asks for it.
  struct PathValue {
    std::string_view name, value;
    bool decoded = false;
  };
  static constexpr std::size_t kPathValuesMax = 16;
  std::array<PathValue, kPathValuesMax> path_values;
  std::size_t path_value_count = 0;

  // Text made for the handler (decoded values), valid until the request has ended.
  [[nodiscard]] std::pmr::memory_resource& arena() {
    arena_used_ = true;
    return arena_;
  }

  std::string out;     // to be sent; responses to pipelined requests collect here
  std::string extra;   // header fields the handler has set
  std::string body;    // what the handler has written, while its head may still change
  std::string pulled;  // the request's body, when the handler asked for all of it
  Date date;

  // Makes room for the next request on the same connection.
  void end_request();

 private:
  std::array<std::byte, 1024> arena_bytes_;
  std::pmr::monotonic_buffer_resource arena_{arena_bytes_.data(), arena_bytes_.size()};
  bool arena_used_ = false;
};

}  // namespace tuza::http
