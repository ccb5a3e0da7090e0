// Who waits for I/O? The poll role: at most one thread blocks in the I/O source at a time.
//
//   free ----------- an idle M takes it, blocks in poll(), gives it back ---------> free
//     \------------- sysmon takes it for the source's thread, which gives it back -> free
//
// Ms prefer to wait themselves: the goroutine then runs on the thread that saw the event. The thread of
// the source is for the time when all Ps are busy: nobody would see events until one of the Ms polls. When an
// M leaves the poller with a goroutine while other Ms sleep, the role stays free at first, because the M is
// usually back at once; if it is not, sysmon sends one of the others (hand_over_polling).
// Rejected: letting that thread wait all the time beside an idle M. The kernel wakes one of the two, and
// under load the wrong one every time: two context switches per batch of events.
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
  // seq_cst, here and above, against Ms that go idle: the M makes its P idle and then looks who holds the
  // role; who gives it back looks for idle Ps after that. One of them sees the other.
  void give_back() { holder_.store(Holder::kNobody, std::memory_order_seq_cst); }

  // When somebody last looked for I/O, coarse time; 0: never.
  [[nodiscard]] std::int64_t last_ns() const { return last_ns_.load(std::memory_order_relaxed); }
  void polled(std::int64_t now_ns) { last_ns_.store(now_ns, std::memory_order_relaxed); }

 private:
  std::atomic<IoSource*> source_{nullptr};
  std::atomic<Holder> holder_{Holder::kNobody};
  std::atomic<std::int64_t> last_ns_{0};
};

const char* name(PollRole::Holder holder);

// The source's thread has polled: queues `ready`, gives the role back, and wakes an M for both.
void poll_role_returned(GList&& ready);

}  // namespace tuza::rt
