// The poll role: at most one thread at a time blocks in the I/O source.
//
//   free ----------- an idle M takes it, blocks in poll(), gives it back ---------> free
//     \------------- sysmon takes it for the source's thread, which gives it back -> free
//
// Ms prefer to wait themselves: the goroutine then runs on the thread that saw the event. The source's thread
// is for the time when all Ps are busy, when no event would be seen until one of the Ms polls. When an M
// leaves the poller with a goroutine while other Ms sleep, the role stays free at first, because the M is
// usually back at once. If the M does not come back, sysmon sends one of the others (hand_over_polling).
//
// Rejected: letting the source's thread wait all the time beside an idle M. The kernel wakes one of the two,
// and under load always the wrong one: two context switches per batch of events.
//
// Thread-safe.
#pragma once

#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/io_source.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class PollRole {
 public:
  enum class Holder : std::uint32_t { kNobody, kM, kSourceThread };

  [[nodiscard]] IoSource* source() const { return source_.load(std::memory_order_acquire); }
  bool attach(IoSource& source) {
    IoSource* none = nullptr;
    return source_.compare_exchange_strong(none, &source, std::memory_order_acq_rel);
  }
  [[nodiscard]] Holder holder() const { return holder_.load(std::memory_order_seq_cst); }
  bool take(Holder by) {
    Holder nobody = Holder::kNobody;
    return holder() == nobody && holder_.compare_exchange_strong(nobody, by, std::memory_order_seq_cst);
  }
  // seq_cst, here and above, orders this against Ms that go idle. The M makes its P idle and then reads the
  // holder of the role; a thread that gives the role back looks for idle Ps afterwards. One of the two sees
  // the other.
  void give_back() { holder_.store(Holder::kNobody, std::memory_order_seq_cst); }

  // The time of the last poll, on the coarse clock; 0: never.
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_.load(std::memory_order_relaxed); }
  void polled(std::int64_t now_ns) { last_ns_.store(now_ns, std::memory_order_relaxed); }

 private:
  std::atomic<IoSource*> source_{nullptr};
  std::atomic<Holder> holder_{Holder::kNobody};
  std::atomic<std::int64_t> last_ns_{0};
};

const char* name(PollRole::Holder holder);

// Called by the source's thread after its poll: queues `ready`, gives the role back, and wakes an M for both.
void poll_role_returned(GList&& ready);

}  // namespace tuza::rt
