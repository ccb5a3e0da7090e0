// The units of work: each call performs one unit, about 20 us of CPU. An object belongs to one job and is small; large
// buffers are on the heap, because goroutine stacks are small.
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
  Pages into;  // allocated by the first call
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

// Starts the thread that write_later() needs. Call once, before write_later().
void start_writer();
// After `ms`, writes one byte to the descriptor and closes it.
void write_later(std::uint64_t ms, int fd);

}  // namespace hostile::steps
