// What hostile handlers do: loops that never let others run, and calls that block the thread.
//
//     const hostile::Outcome done = hostile::work({.kind = hostile::Kind::kBurn, .ms = 200});
//
// Nothing here knows of Tuza, so that the same work can be done by plain threads
// (loadtests/stall_threads.cpp) and be compared. Thread-safe. What is shared is never destroyed: at the end
// of the process some of it may still be at work.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hostile {

// Burners first: they use CPU for as long as they last.
enum class Kind : std::uint8_t {
  kBurn,    // arithmetic
  kMutex,   // the same, one at a time: holding one std::mutex for 1 ms of CPU after the other
  kMalloc,  // malloc and free of many sizes
  kMemcpy,  // 256 KiB at a time
  kThrow,   // throw and catch
  kPrintf,  // fprintf to /dev/null, through one FILE
  kSort,    // qsort with a slow comparison
  kRegex,   // std::regex_search
  kSleep,   // nanosleep
  kRead,    // read from a pipe that another thread writes to when the time is over
  kFile,    // read from a file of 32 MiB, 64 KiB at a time
};
inline constexpr std::array<std::string_view, 11> kNames{
    "burn", "mutex", "malloc", "memcpy", "throw", "printf", "sort", "regex", "sleep", "read", "file"};

[[nodiscard]] std::optional<Kind> kind_named(std::string_view name);
[[nodiscard]] constexpr std::string_view name_of(Kind kind) { return kNames[static_cast<std::size_t>(kind)]; }

struct Job {
  Kind kind = Kind::kBurn;
  std::uint64_t ms = 0;     // burners: CPU time of the thread; sleep and read: wall time
  std::uint64_t bytes = 0;  // file
  bool cold = false;        // file: from the disk, not from the page cache
};

struct Outcome {
  double cpu_ms = 0, wall_ms = 0;
  std::uint64_t iterations = 0;  // of a unit that is the kind's own, some 20 us of CPU for a burner
  std::uint64_t eintr = 0;       // how often a system call failed with EINTR; it is called again
  std::uint64_t errors = 0;      // whatever else went wrong
};

// All jobs of a kind since the start, up to date while they run.
struct alignas(64) Counters {
  std::atomic<std::uint64_t> begun{0}, ended{0}, iterations{0}, eintr{0}, errors{0};
};
[[nodiscard]] Counters& counters(Kind kind);

// Starts the thread that wakes `read`, and makes the file. Once, before the first job.
void prepare();

// Does it. Never looks whether anybody else wants to run. The thread must stay the same throughout.
Outcome work(const Job& job);

// With the probability permille/1000 burns 1 ms of CPU. The same sequence in every process.
void maybe_burn(std::uint64_t permille);

// {"burn":{"begun":1,"ended":0,"iterations":400,"eintr":0,"errors":0},...}
[[nodiscard]] std::string counters_json();

}  // namespace hostile
