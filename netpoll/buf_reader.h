// Public header, part of <tuza/net.h>.
//
// Lines, and pieces of a known size, of a connection, a file, or anything else with read(span<byte>).
//
//     tuza::net::BufReader in(conn);
//     for (auto line : in.lines()) handle(line);
//     if (in.error()) log(in.error()->message());  // the lines have ended early
//
// One goroutine at a time. The source must outlive the reader. Nothing but the reader should read from the source:
// bytes that the reader holds are lost to others.
//
// Every call that reads may park. Errors are those of the source, and Errc::kEndOfStream where the source ends before
// there is what was asked for. A line that does not fit into the buffer is Errc::kBadMessage, and the reader is at its
// beginning still; so a peer cannot make the buffer grow.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::net {

template <class Source>
concept Readable = requires(Source& source, std::span<std::byte> into) {
  { source.read(into) } -> std::same_as<Result<std::size_t>>;
};
template <class Source>
concept ReadableWithin = requires(Source& source, const Context& ctx, std::span<std::byte> into) {
  { source.read(ctx, into) } -> std::same_as<Result<std::size_t>>;
};

class BufReader {
 public:
  static constexpr std::size_t kBufferBytes = 16 << 10;

  // `buffer_bytes` limits the length of a line. The buffer is allocated by the first read.
  template <Readable Source>
  explicit BufReader(Source& source, std::size_t buffer_bytes = kBufferBytes)
      : source_(&source),
        read_([](void* from, const Context&, std::span<std::byte> into) {
          return static_cast<Source*>(from)->read(into);
        }),
        capacity_(buffer_bytes) {}
  // Reads end when `ctx` ends.
  template <ReadableWithin Source>
  BufReader(Context ctx, Source& source, std::size_t buffer_bytes = kBufferBytes)
      : source_(&source),
        read_([](void* from, const Context& within, std::span<std::byte> into) {
          return static_cast<Source*>(from)->read(within, into);
        }),
        ctx_(std::move(ctx)),
        capacity_(buffer_bytes) {}
  BufReader(const BufReader&) = delete;
  BufReader& operator=(const BufReader&) = delete;

  // The next line, without its "\n" or "\r\n". The last line needs none. The text is valid until the next call.
  [[nodiscard]] Result<std::string_view> read_line();
  // The same for another delimiter, which is left out.
  [[nodiscard]] Result<std::string_view> read_until(char delimiter);

  // The next `n` bytes, but does not take them; fewer only if the source ends, or `n` exceeds the buffer. The text is
  // valid until the next call.
  [[nodiscard]] Result<std::string_view> peek(std::size_t n);
  // At least one byte; 0 at the end.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  // Fills `into`.
  [[nodiscard]] Result<void> read_full(std::span<std::byte> into);
  // The next `n` bytes. The string grows as they arrive, so `n` may be what the peer says; limit it nevertheless.
  [[nodiscard]] Result<std::string> read_string(std::size_t n);

  // Bytes that have been read from the source, and not yet taken.
  [[nodiscard]] std::string_view buffered() const { return {buffer_.get() + begin_, end_ - begin_}; }

  class Lines;
  // The remaining lines, for a range-based for loop. Ends at the end of the source or at an error.
  Lines lines();
  // The error that ended lines(); nothing if they ended with the source.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  // Adds bytes of the source behind buffered(); 0 at the end. There must be room.
  [[nodiscard]] Result<std::size_t> fill();
  // Makes room behind buffered(); false if the buffer is full.
  bool make_room();

  void* const source_;
  Result<std::size_t> (*const read_)(void*, const Context&, std::span<std::byte>);
  const Context ctx_;
  const std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;  // null before the first read
  std::size_t begin_ = 0, end_ = 0;
  std::optional<Error> error_;
};

class BufReader::Lines {
 public:
  explicit Lines(BufReader& reader) : reader_(reader) {}

  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(BufReader& reader) : reader_(&reader) { ++*this; }
    const std::string_view& operator*() const { return line_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return reader_ == nullptr; }

   private:
    BufReader* reader_;  // null: no more lines
    std::string_view line_;
  };

  [[nodiscard]] Iterator begin() const { return Iterator(reader_); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  BufReader& reader_;
};

inline BufReader::Lines BufReader::lines() { return Lines(*this); }

}  // namespace tuza::net
