// The adapter of llhttp: parses bytes into the head of a request or of a response.
//
// llhttp is fed the bytes as they arrive. It pauses when the head is complete, before any byte of the body, so that framing
// can be decided (http/wire/framing.h). Bodies never pass through it (http/wire/body_reader.h).
//
// Thread-unsafe. Allocates nothing but the list of fields, which keeps its memory.
#pragma once

#include <tuza/http/wire/head.h>
#include <tuza/http/wire/limits.h>
#include <tuza/http/wire/parse_error.h>

#include <llhttp.h>

#include <cstddef>
#include <expected>
#include <string_view>

namespace tuza::http {

class HeadParser {
 public:
  // Resets the parser; the next byte begins a request, or a response, whose head is stored in `head`. Keeps `limits`.
  void begin(RequestHead& head, const HeadLimits& limits) { begin(HTTP_REQUEST, head, head.target, limits); }
  void begin(ResponseHead& head, const HeadLimits& limits) {
    begin(HTTP_RESPONSE, head, head.reason, limits);
  }

  // Feeds `input_size` more bytes of the head. They follow the bytes fed before, which now begin at `base`
  // (the bytes may have moved since). True: the head is complete, and head.bytes is its size. False: all of
  // the input is consumed, and more is needed. May replace tabs around the value of Content-Length by spaces. Throws
  // std::bad_alloc.
  std::expected<bool, ParseError> feed_head(char* base, std::size_t input_size);

 private:
  void begin(llhttp_type_t direction, Head& head, HeadSlice& line, const HeadLimits& limits);
  static const llhttp_settings_t& settings();
  static HeadParser& self(llhttp_t* parser) { return *static_cast<HeadParser*>(parser->data); }
  void add(HeadSlice& slice, const char* at, std::size_t size) const;
  bool add_field();
  void begin_again();
  llhttp_errno_t execute(const char* base, std::size_t from, std::size_t to);
  llhttp_errno_t execute_wide(const char* base, std::size_t from, std::size_t to);
  llhttp_errno_t execute_head(char* base, std::size_t size);
  std::expected<bool, ParseError> head_failed(const char* base, std::size_t size);
  std::expected<bool, ParseError> judge_method(std::string_view head);
  [[nodiscard]] ParseError line_too_long(std::size_t offset) const;
  [[nodiscard]] ParseError explain(std::size_t offset) const;
  [[nodiscard]] bool is_request() const { return parser_.type == HTTP_REQUEST; }

  llhttp_t parser_;
  Head* head_ = nullptr;
  HeadSlice* line_ = nullptr;  // what has no limit of its own in the start line: target, reason
  const HeadLimits* limits_ = nullptr;
  const char* base_ = nullptr;
  std::size_t fed_ = 0;      // bytes of the head fed so far
  bool wide_ = false;        // the target has bytes above 0x7f, which llhttp gets as letters
  bool line_ended_ = false;  // wide_: the request line is complete
  bool misplaced_ = false;   // wide_: such a byte is not in the target, at offset fed_
  bool in_value_ = false;
  bool unknown_method_ = false;  // llhttp stopped in the method, whose end has not arrived yet
  bool too_many_headers_ = false;
  bool no_memory_ = false;
  bool head_complete_ = false;
};

}  // namespace tuza::http
