// The units of work: each call is one, some 20 us of CPU. Objects belong to one job, and are small; what they
// need much memory for is on the heap, because stacks of goroutines are small.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>

namespace hostile::steps {

struct Arithmetic {
  std::uint64_t state = 1;
  std::uint64_t operator()();
};

struct Malloc {
  std::minstd_rand random{1};
  std::uint64_t operator()();
};

struct Freed {
  void operator()(char* block) const { std::free(block); }
};
using Pages = std::unique_ptr<char[], Freed>;

struct Memcpy {
  Pages into;  // made by the first call
  std::size_t from = 0;
  std::uint64_t operator()();
};

struct Throw {
  std::uint64_t count = 0;
  std::uint64_t operator()();
};

struct Printf {
  std::uint64_t count = 0;
  std::uint64_t operator()();
};

struct Sort {
  std::minstd_rand random{1};
  std::array<std::uint32_t, 128> numbers{};
  std::uint64_t operator()();
};

struct Regex {
  std::uint64_t operator()();
};

// Starts the thread that write_later() needs. Once, before it.
void start_writer();
// Writes one byte into the descriptor after `ms`, and closes it.
void write_later(std::uint64_t ms, int fd);

}  // namespace hostile::steps
