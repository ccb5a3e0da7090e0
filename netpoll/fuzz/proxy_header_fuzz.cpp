// Fuzz target: PROXY headers, versions 1 and 2.
//
//   - A header is found from exactly its own bytes: each prefix needs more, and bytes behind change nothing.
//   - What is refused stays refused, whatever follows; and it is refused at a prefix, if at all, that every longer one has.
//   - A header within version 1 is what the same client and destination are written as.
//
// The input: the bytes.
//
// Covers: netpoll/proxy_protocol.cpp
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <cstring>
#include <memory>
#include <string>

namespace tuza::net {
namespace {

using fuzz::expect;

enum class State { kMore, kHeader, kRefused };

// Parses a copy in memory of its own, so that a read behind it is seen.
State state_of(std::string_view bytes, std::optional<ProxyHeader>* header = nullptr) {
  const auto copy = std::make_unique<char[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  const auto parsed = parse_proxy_header({copy.get(), bytes.size()});
  if (!parsed) return State::kRefused;
  if (header != nullptr) *header = *parsed;
  return *parsed ? State::kHeader : State::kMore;
}

std::string as_line(const ProxyHeader& header) {
  const auto& client = *header.client;
  const auto& to = *header.destination;
  return "PROXY " + std::string(client.address().is_v4() ? "TCP4 " : "TCP6 ") + client.address().to_string() +
         " " + to.address().to_string() + " " + std::to_string(client.port()) + " " +
         std::to_string(to.port()) + "\r\n";
}

void check_header(std::string_view bytes, const ProxyHeader& header) {
  expect(header.bytes > 0 && header.bytes <= bytes.size() && header.bytes <= kProxyHeaderBytesMax,
         "a header lies within the bytes and the limit", bytes);
  for (std::size_t n = 0; n < header.bytes; ++n) {
    expect(state_of(bytes.substr(0, n)) == State::kMore, "each prefix of a header needs more",
           bytes.substr(0, n));
  }
  expect(state_of(std::string(bytes.substr(0, header.bytes)) + "GET /") == State::kHeader,
         "what follows a header changes nothing", bytes);
  expect(header.client.has_value() == header.destination.has_value(), "both addresses, or none", bytes);
  expect(!header.client || !header.unix_client, "one kind of client", bytes);
  if (!header.client) return;
  std::optional<ProxyHeader> again;
  const std::string line = as_line(header);
  expect(state_of(line, &again) == State::kHeader && again->client == header.client &&
             again->destination == header.destination && again->bytes == line.size(),
         "as a line, it says the same", line);
}

void check(std::string_view bytes) {
  std::optional<ProxyHeader> header;
  switch (state_of(bytes, &header)) {
    case State::kHeader: check_header(bytes, *header); break;
    case State::kMore:
      expect(bytes.size() < kProxyHeaderBytesMax, "the limit is reached at some time", bytes.substr(0, 200));
      break;
    case State::kRefused: {
      expect(state_of(std::string(bytes) + "\r\n") == State::kRefused, "refused stays refused", bytes);
      bool refused = false;
      for (std::size_t n = 0; n <= bytes.size(); ++n) {
        const State state = state_of(bytes.substr(0, n));
        expect(state != State::kHeader && (!refused || state == State::kRefused), "refused stays refused",
               bytes.substr(0, n));
        refused = state == State::kRefused;
      }
    }
  }
}

}  // namespace
}  // namespace tuza::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::net::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
