// Activity: what a goroutine is working on, in a line of text for reports: the request that it serves.
//
//     class RequestLoop {
//       const rt::ActivityScope announced_{&describe_request, this};  // on the goroutine that serves the connection
//     };
//
// A goroutine announces the function once, and pays nothing more: no text is made before somebody asks. Then
// the function runs in one of three ways. In two of them the goroutine stands still:
//
//   - the goroutine is parked and pinned (G::pin), and a dump calls the function on its own thread. The pin
//     acquires everything that the goroutine wrote before it parked;
//   - the goroutine runs, and the signal handler on its thread calls the function (rt/report/sample.h). The
//     goroutine may have been interrupted between any two instructions.
//
// In the third, its thread waits in the kernel and must not get a signal, which could end its call. A dump calls
// the function on its own thread. The goroutine may continue at any moment, and what the function reads may be
// gone: so it reads by copies that the kernel makes (process_vm_readv), which fail where there is no memory, and the
// dump throws the text away unless the thread waits at the same call afterwards. It may have been elsewhere
// meanwhile: then the text may be of another request, or nonsense. The function itself stays valid: its address
// is in the G, which is never unmapped.
//
// So the function must be async-signal-safe and short. It reads memory of the goroutine only by `read`, gives up if
// that fails, checks what would lead it elsewhere, such as an enumerator, and writes `into`.
// What it reads must be complete from the compiler's point of view: the goroutine publishes with a relaxed
// atomic store behind std::atomic_signal_fence, and withdraws in the same way before it changes the rest.
//
// Thread safety: a scope belongs to its goroutine.
#pragma once

#include <tuza/sched/rt/g.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace tuza::rt {

class ActivityScope {
 public:
  // `context` must live as long as the scope. On a thread that is not a goroutine nothing happens.
  ActivityScope(Describe* describe, const void* context);
  ~ActivityScope();
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

 private:
  G* g_;
};

// The text of one activity. Bytes that could imitate other lines or control a terminal are replaced by '?'.
struct ActivityText {
  std::array<char, 160> bytes;
  std::size_t size = 0;

  [[nodiscard]] std::string_view text() const { return {bytes.data(), size}; }
  // The goroutine stands still, in one of the two ways above. Async-signal-safe.
  void read(const G& g);
  // It need not stand still, so the text may be nonsense.
  void read_from_outside(const G& g);

 private:
  void read(const G& g, ReadMemory how);
};

// Appends as much of `text` as there is room for, and returns the new size. Async-signal-safe.
std::size_t append(std::span<char> into, std::size_t size, std::string_view text);

}  // namespace tuza::rt
