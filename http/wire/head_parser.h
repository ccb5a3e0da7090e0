// From bytes to a Head, and from chunks to a body: the adapter of llhttp.
//
// llhttp is fed what has come, as it comes. It pauses when the head is complete, before any byte of the body,
// so that we decide about framing (wire/framing.h) and a handler can run; for chunked bodies it goes on from
// there, handing out one slice of data at a time; and it pauses again at the end of the message, so that a
// pipelined request behind it is not touched. Bodies with a Content-Length never pass through it.
//
// Thread-unsafe. Allocates nothing.
#pragma once

#include <tuza/http/options.h>
#include <tuza/http/wire/bad_request.h>
#include <tuza/http/wire/head.h>

#include <llhttp.h>

#include <cstddef>
#include <expected>
#include <string_view>

namespace tuza::http {

class HeadParser {
 public:
  // Forgets everything; the next byte begins a request, whose head goes to `head`.
  void begin(Head& head, const ServerOptions& options);

  // Feeds more bytes of the head, `input_size` of them. They follow those that were fed before, which begin
  // at `base` now (the bytes may have moved since). True: the head is complete, its bytes are counted in
  // head.bytes. False: all of the input is taken and more is needed. May replace tabs around the value of
  // Content-Length by spaces.
  std::expected<bool, BadRequest> feed_head(char* base, std::size_t input_size);

  // Framing has found that the body is chunked. (llhttp 8 misses that behind a tab.)
  void expect_chunks() { parser_.flags |= F_CHUNKED; }

  // One step through a chunked body.
  struct BodyStep {
    std::string_view data;  // part of `input`; empty when the step met none
    std::size_t consumed;   // of `input`, `data` included
    bool complete;          // that was the end of the message
  };
  std::expected<BodyStep, BadRequest> feed_body(std::string_view input);

 private:
  static const llhttp_settings_t& settings();
  static HeadParser& self(llhttp_t* parser) { return *static_cast<HeadParser*>(parser->data); }
  void add(HeadSlice& slice, const char* at, std::size_t size) const;
  llhttp_errno_t execute_head(char* base, std::size_t size);
  std::expected<bool, BadRequest> head_failed(const char* base, std::size_t size);
  std::expected<bool, BadRequest> judge_method(std::string_view head);
  BadRequest explain(std::size_t offset) const;
  bool overhead_is_strict(std::string_view bytes);

  llhttp_t parser_;
  Head* head_ = nullptr;
  const ServerOptions* options_ = nullptr;
  const char* base_ = nullptr;
  std::size_t fed_ = 0;  // bytes of the head fed so far
  bool in_value_ = false;
  bool unknown_method_ = false;  // llhttp gave up at the method, which has not come to its end yet
  bool too_many_headers_ = false;
  bool head_complete_ = false;
  bool message_complete_ = false;
  std::string_view data_;           // of the present body step
  std::size_t overhead_bytes_ = 0;  // of the chunked body, since the last byte of data
  char last_overhead_ = '\n';       // the byte before; 0 if that was data
};

}  // namespace tuza::http
