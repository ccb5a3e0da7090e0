// A kernel that refuses system calls: from the start, from some moment on, or intermittently.
//
// Implemented with seccomp and a supervisor: the kernel asks a thread of the test how to answer each call of
// one number. That thread itself is not filtered, as it existed before the filter; all threads that the
// caller creates afterwards are. A filter cannot be removed, so this belongs in a process of its own.
#pragma once

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <thread>

namespace tuza::testing {

class RefusedCalls {
 public:
  // Refuses nothing yet.
  explicit RefusedCalls(int number, int error) : error_(error) {
    // Spins instead of waiting by a system call, which may be the filtered one.
    std::thread([this] {
      ready_ = true;
      while (listener_ < 0) {
      }
      supervise(listener_);
    }).detach();
    while (!ready_) {
    }
    listener_ = install(number);
  }

  void refuse_from_now_on() { policy_ = Policy::kRefuse; }
  // Refuses all but the first `allowed` calls.
  void refuse_after(int allowed) {
    allowed_ = allowed;
    policy_ = Policy::kRefuse;
  }
  // Refuses every third call.
  void refuse_now_and_then() { policy_ = Policy::kNowAndThen; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  enum class Policy { kAllow, kNowAndThen, kRefuse };

  // A futex wake-up has no meaningful errors, nor has the end of a registration.
  static bool may_fail(const seccomp_data& call) {
    if (call.nr == SYS_epoll_ctl && call.args[1] == EPOLL_CTL_DEL) return false;
    return call.nr != SYS_futex || (call.args[1] & static_cast<std::uint64_t>(FUTEX_CMD_MASK)) == FUTEX_WAIT;
  }

  static int install(int number) {
    const std::array<sock_filter, 4> filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                             static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(filter.size()),
                             const_cast<sock_filter*>(filter.data())};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(3);
    const long fd =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (fd < 0) ::_exit(3);
    return static_cast<int>(fd);
  }

  [[noreturn]] void supervise(int listener) {
    for (unsigned calls = 0;;) {
      struct seccomp_notif asked{};
      if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;  // the call was abandoned
      struct seccomp_notif_resp answer{};
      answer.id = asked.id;
      const Policy policy = may_fail(asked.data) ? policy_.load() : Policy::kAllow;
      if ((policy == Policy::kRefuse && allowed_-- <= 0) ||
          (policy == Policy::kNowAndThen && calls++ % 3 == 0)) {
        answer.error = -error_;
        ++refused_;
      } else {
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      }
      ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

  const int error_;
  std::atomic<bool> ready_{false};
  std::atomic<int> listener_{-1};
  std::atomic<Policy> policy_{Policy::kAllow};
  std::atomic<int> allowed_{0};
  std::atomic<int> refused_{0};
};

}  // namespace tuza::testing
