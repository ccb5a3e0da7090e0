// Public header, part of <tuza/net.h>.
//
// Collects small pieces for a connection, a file, or anything else with write_all(span<const byte>).
//
//     tuza::net::BufWriter out(conn);
//     for (const Item& item : items) TUZA_TRY(out.write_all(to_line(item)));
//     TUZA_TRY(out.flush());
//
// What is collected goes out when the buffer is full, by flush(), and with the destructor, whose error nobody gets. After an error
// every call returns it: a part of what was collected may have been written, and nothing more is.
//
// One goroutine at a time. The sink must outlive the writer. Every call that writes may park. Errors are those of the sink.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tuza::net {

template <class Sink>
concept Writable = requires(Sink& sink, std::span<const std::byte> data) {
  { sink.write_all(data) } -> std::same_as<Result<void>>;
};
template <class Sink>
concept WritableWithin = requires(Sink& sink, const Context& ctx, std::span<const std::byte> data) {
  { sink.write_all(ctx, data) } -> std::same_as<Result<void>>;
};

class BufWriter {
 public:
  static constexpr std::size_t kBufferBytes = 16 << 10;

  // The buffer is allocated with the first piece.
  template <Writable Sink>
  explicit BufWriter(Sink& sink, std::size_t buffer_bytes = kBufferBytes)
      : sink_(&sink),
        write_([](void* to, const Context&, std::span<const std::byte> data) {
          return static_cast<Sink*>(to)->write_all(data);
        }),
        capacity_(buffer_bytes) {}
  // Writes end when `ctx` ends.
  template <WritableWithin Sink>
  BufWriter(Context ctx, Sink& sink, std::size_t buffer_bytes = kBufferBytes)
      : sink_(&sink),
        write_([](void* to, const Context& within, std::span<const std::byte> data) {
          return static_cast<Sink*>(to)->write_all(within, data);
        }),
        ctx_(std::move(ctx)),
        capacity_(buffer_bytes) {}
  BufWriter(const BufWriter&) = delete;
  BufWriter& operator=(const BufWriter&) = delete;
  ~BufWriter() { (void)flush(); }

  // A piece that does not fit goes out behind what was collected, at once.
  [[nodiscard]] Result<void> write_all(std::span<const std::byte> data);
  [[nodiscard]] Result<void> write_all(std::string_view text) {
    return write_all(std::as_bytes(std::span(text)));
  }
  // Writes what was collected.
  [[nodiscard]] Result<void> flush();
  // Bytes that have been collected, and not yet written.
  [[nodiscard]] std::size_t buffered() const { return used_; }

 private:
  [[nodiscard]] Result<void> write(std::span<const std::byte> data);

  void* const sink_;
  Result<void> (*const write_)(void*, const Context&, std::span<const std::byte>);
  const Context ctx_;
  const std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;  // null before the first piece
  std::size_t used_ = 0;
  std::optional<Error> error_;  // the first
};

}  // namespace tuza::net
