// The calls of sched/arch/calls.h, by number.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::sys {

template <long kNumber>
struct Call {
  template <class... Args>
  long operator()(Args... args) const {
    return invoke(kNumber, args...);
  }
};

// -- Files and descriptors.
inline constexpr int kOpenToEnter = O_PATH;
inline constexpr Call<SYS_close> close;
inline constexpr Call<SYS_dup3> dup3;
inline constexpr Call<SYS_faccessat> faccessat;
inline constexpr Call<SYS_fcntl> fcntl;
inline constexpr Call<SYS_fdatasync> fdatasync;
inline constexpr Call<SYS_flock> flock;
inline constexpr Call<SYS_fstat> fstat;
inline constexpr Call<SYS_newfstatat> fstatat;
inline constexpr Call<SYS_fsync> fsync;
inline constexpr Call<SYS_ftruncate> ftruncate;
inline constexpr Call<SYS_ioctl> ioctl;
inline constexpr Call<SYS_lseek> lseek;
inline constexpr Call<SYS_mkdirat> mkdirat;
inline constexpr Call<SYS_openat> openat;
inline constexpr Call<SYS_pipe2> pipe2;
inline constexpr Call<SYS_pread64> pread;
inline constexpr Call<SYS_pwrite64> pwrite;
inline constexpr Call<SYS_read> read;
inline constexpr Call<SYS_readlinkat> readlinkat;
inline constexpr Call<SYS_unlinkat> unlinkat;
inline constexpr Call<SYS_write> write;

inline long renameat(long from, const char* name, long to, const char* new_name) {
  return invoke(SYS_renameat2, from, name, to, new_name, 0);  // not every processor has the older call
}
// poll(2) with a limit in nanoseconds, from which the time waited is taken off; null: no limit.
inline long poll(struct pollfd* descriptors, unsigned count, struct timespec* limit) {
  return invoke(SYS_ppoll, descriptors, count, limit, nullptr, 0);
}

// -- Sockets.
inline constexpr int kNonBlocking = SOCK_NONBLOCK;
inline constexpr int kCloseOnExec = SOCK_CLOEXEC;
inline constexpr Call<SYS_accept4> accept4;
inline constexpr Call<SYS_bind> bind;
inline constexpr Call<SYS_connect> connect;
inline constexpr Call<SYS_getpeername> getpeername;
inline constexpr Call<SYS_getsockname> getsockname;
inline constexpr Call<SYS_getsockopt> getsockopt;
inline constexpr Call<SYS_listen> listen;
inline constexpr Call<SYS_recvfrom> recvfrom;
inline constexpr Call<SYS_sendmsg> sendmsg;
inline constexpr Call<SYS_sendto> sendto;
inline constexpr Call<SYS_setsockopt> setsockopt;
inline constexpr Call<SYS_shutdown> shutdown;
inline constexpr Call<SYS_socket> socket;

// -- Memory.
inline constexpr int kMapWithoutReserve = MAP_NORESERVE;  // memory counts as it is used
inline constexpr Call<SYS_mmap> mmap;
inline constexpr Call<SYS_mprotect> mprotect;
inline constexpr Call<SYS_munmap> munmap;

// -- Processes and time.
inline constexpr Call<SYS_clock_nanosleep> clock_nanosleep;
inline constexpr Call<SYS_geteuid> geteuid;
inline constexpr Call<SYS_getpid> getpid;
inline long getrlimit(int resource, struct rlimit* limit) {
  return invoke(SYS_prlimit64, 0, resource, nullptr, limit);
}
inline constexpr Call<SYS_kill> kill;
inline constexpr Call<SYS_nanosleep> nanosleep;
inline constexpr Call<SYS_sched_yield> sched_yield;

}  // namespace tuza::sys
