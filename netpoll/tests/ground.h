// Tests that run over memory and over sockets of loopback alike.
#pragma once

#include <tuza/netpoll/testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

namespace tuza::net::testing {

enum class Over : std::uint8_t { kMemory, kSockets };

// One of the two networks.
class Ground {
 public:
  explicit Ground(Over over) {
    if (over == Over::kMemory) memory_ = std::make_unique<MemoryNetwork>();
  }
  Listener listen() { return memory_ ? memory_->listen().value() : listen_on_loopback(); }
  Result<Conn> dial(const std::string& address) {
    return memory_ ? memory_->dial(address) : net::dial("tcp", address);
  }
  TcpPair connect(Listener& listener) {
    Conn client = dial(listener.address()).value();
    return {std::move(client), listener.accept().value()};
  }
  TcpPair pair() {
    Listener listener = listen();
    return connect(listener);
  }

 private:
  std::unique_ptr<MemoryNetwork> memory_;  // null: sockets
};

class OnBothGrounds : public ::testing::TestWithParam<std::tuple<Over, int>> {
 protected:
  void on_ground(const std::function<void(Ground&)>& body) {
    run_with(std::get<1>(GetParam()), [&] {
      Ground ground(std::get<0>(GetParam()));
      body(ground);
    });
  }
};
inline std::string ground_name(const ::testing::TestParamInfo<std::tuple<Over, int>>& given) {
  return std::string(std::get<0>(given.param) == Over::kMemory ? "Memory" : "Sockets") +
         std::to_string(std::get<1>(given.param));
}
#define TUZA_ON_BOTH_GROUNDS(suite)                                                                          \
  INSTANTIATE_TEST_SUITE_P(P, suite,                                                                         \
                           ::testing::Combine(::testing::Values(Over::kMemory, Over::kSockets),              \
                                              ::testing::ValuesIn(::tuza::testing::proc_counts({1, 2, 4}))), \
                           ground_name)

}  // namespace tuza::net::testing
