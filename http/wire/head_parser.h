// The adapter of llhttp: parses bytes into a Head, and decodes chunked bodies.
//
// llhttp is fed the bytes as they arrive. It pauses when the head is complete, before any byte of the body,
// so that framing can be decided (wire/framing.h) and a handler can run. For chunked bodies it then
// continues, and returns one slice of data at a time. It pauses again at the end of the message, so that a
// pipelined request behind it stays untouched. Bodies with a Content-Length never pass through llhttp.
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
  // Resets the parser; the next byte begins a request, whose head is stored in `head`.
  void begin(Head& head, const ServerOptions& options);

  // Feeds `input_size` more bytes of the head. They follow the bytes fed before, which now begin at `base`
  // (the bytes may have moved since). True: the head is complete, and head.bytes is its size. False: all of
  // the input is consumed, and more is needed. May replace tabs around the value of Content-Length by spaces.
  std::expected<bool, BadRequest> feed_head(char* base, std::size_t input_size);

 private:
  static const llhttp_settings_t& settings();
  static HeadParser& self(llhttp_t* parser) { return *static_cast<HeadParser*>(parser->data); }
  void add(HeadSlice& slice, const char* at, std::size_t size) const;
  void begin_again();
  llhttp_errno_t execute(const char* base, std::size_t from, std::size_t to);
  llhttp_errno_t execute_wide(const char* base, std::size_t from, std::size_t to);
  llhttp_errno_t execute_head(char* base, std::size_t size);
  std::expected<bool, BadRequest> head_failed(const char* base, std::size_t size);
  std::expected<bool, BadRequest> judge_method(std::string_view head);
  BadRequest explain(std::size_t offset) const;

  llhttp_t parser_;
  Head* head_ = nullptr;
  const ServerOptions* options_ = nullptr;
  const char* base_ = nullptr;
  std::size_t fed_ = 0;      // bytes of the head fed so far
  bool wide_ = false;        // the target has bytes above 0x7f, which llhttp gets as letters
  bool line_ended_ = false;  // wide_: the request line is complete
  bool misplaced_ = false;   // wide_: such a byte is not in the target, at offset fed_
  bool in_value_ = false;
  bool unknown_method_ = false;  // llhttp stopped in the method, whose end has not arrived yet
  bool too_many_headers_ = false;
  bool head_complete_ = false;
};

}  // namespace tuza::http
