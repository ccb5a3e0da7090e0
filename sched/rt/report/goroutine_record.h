// What a dump says about one goroutine: the data is read inside the runtime and formatted outside.
//
// Thread safety: any number of threads may call read_goroutine(); everything else belongs to one thread.
#pragma once

#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/report/sample.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace tuza::rt {

struct GoroutineRecord {
  std::uint64_t id = 0, parent_id = 0;
  GStatus status = GStatus::kDead;
  WaitReason reason = WaitReason::kNone;
  const char* runs = "";      // how the goroutine runs: with a P, without, suspended
  std::int64_t machine = -1;  // the M that runs the goroutine
  std::int64_t since_ns = 0;  // when its wait, its slice, or its time without a P began; coarse clock
  std::int64_t cpu_ns = 0;    // CPU time used without a P
  bool locked = false;        // locked to its thread
  bool blocks = false;        // runs in a marked blocking call
  G::Name name{};
  const char* site_file = nullptr;
  const char* site_function = nullptr;
  std::uint32_t site_line = 0;
  Sample where;

  [[nodiscard]] bool waits() const { return status == GStatus::kWaiting; }
  [[nodiscard]] bool runs_on_m() const { return machine >= 0; }
  [[nodiscard]] bool has_age() const { return since_ns != 0; }
  // Equal except for number, age, parent and M. Of goroutines that run, also their places may differ, which change all the
  // time, and the query of the request that they serve.
  [[nodiscard]] bool same_kind(const GoroutineRecord& other) const;
  [[nodiscard]] std::size_t hash() const;
  void drop_place();
};

// The status of a goroutine that does not wait, in Go's words: "syscall" in a marked blocking call.
const char* shown_status(const G& g);

// Returns false if there is no goroutine any more. Call inside the runtime if on a goroutine, because the
// call may pin `g`. Allocates nothing. The place of a goroutine that runs is left open: take_sample() asks for
// it, outside the runtime.
bool read_goroutine(G& g, bool with_stack, GoroutineRecord& record);

// -- Formatting. These functions allocate, read files, and take locks of libc: not inside the runtime.

// Descriptions of code addresses, each looked up once.
class FrameNames {
 public:
  // `all`: also the frames that say nothing about the program.
  explicit FrameNames(bool all) : all_(all) {}

  struct Frame {
    std::string text;
    bool shown = true;
    std::string function;  // as the demangler names it
    std::string runs;      // of a frame that begins a goroutine: the goroutine's function
  };
  const Frame& of(std::uintptr_t pc);

 private:
  const bool all_;
  std::unordered_map<std::uintptr_t, Frame> frames_;
};

void append_goroutine(std::string& out, FrameNames& names, const GoroutineRecord& g, std::int64_t now);
void append_state(std::string& out, const GoroutineRecord& g);
// All of them, if none is shown. The goroutine's function stands in the place of the frame that calls it, unless it has one of its
// own.
void append_frames(std::string& out, FrameNames& names, std::span<const std::uintptr_t> frames);
void append_stack(std::string& out, FrameNames& names, const GoroutineRecord& g);
void append_duration(std::string& out, std::int64_t ns);

}  // namespace tuza::rt
