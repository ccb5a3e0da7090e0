// The order in which a thief visits the Ps: four rounds over all of them, each round in a new random order.
//
// A fixed order would send all thieves to the same victim. One round would often miss work that is just being
// moved, and would take a goroutine from runnext although another P has goroutines that really wait
// (rt/queue/steal.cpp).
//
// Arithmetic only. Thread-unsafe.
#pragma once

#include <tuza/sched/rt/base/random.h>

#include <cstdint>
#include <numeric>
#include <optional>

namespace tuza::rt {

class StealOrder {
 public:
  // `ps`: the number of Ps, at least 1, the thief's own included. `random` must outlive this object.
  StealOrder(Random& random, std::uint32_t ps) : random_(random), ps_(ps) { begin_round(); }

  struct Visit {
    std::uint32_t p = 0;
    bool last_round = false;
  };
  // Returns nullopt after the last round.
  std::optional<Visit> next() {
    if (left_ == 0) {
      if (round_ == kRounds) return std::nullopt;
      begin_round();
    }
    --left_;
    at_ = (at_ + stride_) % ps_;
    return Visit{at_, round_ == kRounds};
  }

 private:
  static constexpr int kRounds = 4;

  // A random start, and a stride that is coprime to the number of Ps, visit each P once.
  void begin_round() {
    ++round_;
    left_ = ps_;
    at_ = random_.below(ps_);
    do stride_ = 1 + random_.below(ps_);
    while (std::gcd(stride_, ps_) != 1);
  }

  Random& random_;
  std::uint32_t ps_;
  int round_ = 0;  // the present one, from 1
  std::uint32_t left_ = 0;
  std::uint32_t at_ = 0;
  std::uint32_t stride_ = 1;
};

}  // namespace tuza::rt
