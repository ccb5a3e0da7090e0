// What middleware puts between a handler and the carrier of its bodies: compression, limits.
//
//     handler -- write --> BodyFilter -- pass_on --> carrier         a streamed response
//     handler <-- read --- BodySource <-- read_below - carrier       the body of a request
//
// Both are installed for the time of one call of a handler, by objects on its stack, and leave however the call ends.
// A response that is small enough to be held back until the handler has returned meets no filter: middleware then
// changes it in place (Exchange::reopen_response()). So the usual request pays nothing, and a streamed one pays a
// predictable branch for each piece.
//
// Thread-unsafe: owned by the handler's goroutine.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tuza::http {

class Exchange;

class BodyFilter {
 public:
  // Installs itself, unless another filter is installed.
  explicit BodyFilter(Exchange& exchange);
  BodyFilter(const BodyFilter&) = delete;
  BodyFilter& operator=(const BodyFilter&) = delete;

  // The response begins to stream; this is the last moment for its fields. False: the body passes unchanged, and the
  // filter is not called again.
  virtual bool begin() = 0;
  // The next bytes of the handler. `flush`: all bytes so far must be passed on (pass_on()). May park.
  virtual Result<void> write(std::string_view data, bool flush, const Context* ctx) = 0;

 protected:
  ~BodyFilter();
  [[nodiscard]] bool installed() const { return installed_; }
  // Gives the carrier the next bytes of the filtered body. May park.
  Result<void> pass_on(std::string_view data, const Context* ctx);
  // After the last pass_on(), when the handler has returned: the carrier may end the body. Without it, the client sees
  // the response break off.
  void end();
  Exchange& exchange_;

 private:
  bool installed_;
  std::uint64_t passed_on_ = 0;
};

class BodySource {
 public:
  // Installs itself above the sources that are installed.
  explicit BodySource(Exchange& exchange);
  BodySource(const BodySource&) = delete;
  BodySource& operator=(const BodySource&) = delete;

  // As Request::read_body(). Parks.
  virtual Result<std::size_t> read(std::span<std::byte> into, const Context* ctx) = 0;

 protected:
  ~BodySource();
  Result<std::size_t> read_below(std::span<std::byte> into, const Context* ctx);
  Exchange& exchange_;

 private:
  BodySource* const below_;
};

}  // namespace tuza::http
