// The work of the hostile handlers: loops that never let others run, and calls that block the thread.
//
//     const hostile::Outcome done = hostile::work({.kind = hostile::Kind::kBurn, .ms = 200});
//
// Nothing here depends on Tuza, so that plain threads can do the same work for comparison
// (loadtests/stall_threads.cpp). Thread-safe. Shared objects are never destroyed: jobs may still be running when the
// process ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hostile {

// The first kinds are burners: they use CPU for their whole duration.
enum class Kind : std::uint8_t {
  kBurn,    // arithmetic
  kMutex,   // arithmetic, one job at a time: each holds one std::mutex for 1 ms of CPU, again and again
  kMalloc,  // malloc and free of many sizes
  kMemcpy,  // 256 KiB at a time
  kThrow,   // throw and catch
  kPrintf,  // fprintf to /dev/null, through one FILE
  kSort,    // qsort with a slow comparison
  kRegex,   // std::regex_search
  kSleep,   // nanosleep
  kRead,    // read from a pipe that another thread writes to when the time has passed
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
  std::uint64_t iterations = 0;  // in units of the kind; for a burner, one is about 20 us of CPU
  std::uint64_t eintr = 0;       // system calls that failed with EINTR and were repeated
  std::uint64_t errors = 0;      // all other failures
};

// Totals for all jobs of a kind since the start, updated while jobs run.
struct alignas(64) Counters {
  std::atomic<std::uint64_t> begun{0}, ended{0}, iterations{0}, eintr{0}, errors{0};
};
[[nodiscard]] Counters& counters(Kind kind);

// Starts the thread that wakes the readers of kRead, and creates the file. Call once, before the first job.
void prepare();

// Does the job. Never yields to others. The thread must stay the same throughout the call.
Outcome work(const Job& job);

// Burns 1 ms of CPU with probability permille/1000. The sequence of decisions is the same in every process.
void maybe_burn(std::uint64_t permille);

// {"burn":{"begun":1,"ended":0,"iterations":400,"eintr":0,"errors":0},...}
[[nodiscard]] std::string counters_json();

}  // namespace hostile
