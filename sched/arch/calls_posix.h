// The calls of sched/arch/calls.h, by the C library. Where it has a later edition's call that others lack (POSIX.1-2024:
// accept4, pipe2), the older calls stand for it; then a descriptor is for a moment without its flags, and a fork() in
// another thread inherits it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/portion.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace tuza::sys {

// -- The C library's results and types.

inline long result(long value) { return value == -1 ? -last_error() : value; }
inline int narrow(long descriptor) { return static_cast<int>(descriptor); }
inline std::size_t size(auto count) { return static_cast<std::size_t>(count); }

inline long set_flags(long fd, int status, int descriptor) {
  if (status != 0) {
    const long now = result(::fcntl(narrow(fd), F_GETFL));
    if (now < 0) return now;
    if (const long error = result(::fcntl(narrow(fd), F_SETFL, static_cast<int>(now) | status)); error < 0)
      return error;
  }
  return descriptor == 0 ? 0 : result(::fcntl(narrow(fd), F_SETFD, descriptor));
}

// `fd` with the flags, or -errno and no descriptor.
inline long with_flags(long fd, int status, int descriptor) {
  if (fd < 0) return fd;
  const long error = set_flags(fd, status, descriptor);
  if (error < 0) ::close(narrow(fd));
  return error < 0 ? error : fd;
}

// -- Files and descriptors.

// A flag of openat(): the folder is only to be looked into by name, which takes no permission to read it. (Linux opens
// files with it too, as places to look at.)
#if defined(O_SEARCH)
inline constexpr int kOpenToEnter = O_SEARCH;
#else
inline constexpr int kOpenToEnter = O_RDONLY;
#endif
inline constexpr auto close = [](long fd) { return result(::close(narrow(fd))); };
inline constexpr auto dup3 = [](long fd, long onto, int flags) {
  const long made = result(::dup2(narrow(fd), narrow(onto)));
  if (made >= 0 && (flags & O_CLOEXEC) != 0) ::fcntl(narrow(made), F_SETFD, FD_CLOEXEC);
  return made;
};
inline constexpr auto faccessat = [](long folder, const char* name, int mode) {
  return result(::faccessat(narrow(folder), name, mode, 0));
};
inline constexpr auto fcntl = [](long fd, int command, auto... argument) {
  return result(::fcntl(narrow(fd), command, argument...));
};
#if defined(__APPLE__)
// There, fsync() leaves the data in the cache of the disk. Some file systems, those of networks, know nothing more.
inline constexpr auto fsync = [](long fd) {
  const long error = result(::fcntl(narrow(fd), F_FULLFSYNC));
  return error == 0 ? 0 : result(::fsync(narrow(fd)));
};
inline constexpr auto fdatasync = fsync;
#else
inline constexpr auto fsync = [](long fd) { return result(::fsync(narrow(fd))); };
inline constexpr auto fdatasync = [](long fd) { return result(::fdatasync(narrow(fd))); };
#endif
inline constexpr auto flock = [](long fd, int operation) { return result(::flock(narrow(fd), operation)); };
inline constexpr auto fstat = [](long fd, struct stat* info) { return result(::fstat(narrow(fd), info)); };
inline constexpr auto fstatat = [](long folder, const char* name, struct stat* info, int flags) {
  return result(::fstatat(narrow(folder), name, info, flags));
};
inline constexpr auto ftruncate = [](long fd, auto bytes) {
  return result(::ftruncate(narrow(fd), static_cast<off_t>(bytes)));
};
inline constexpr auto ioctl = [](long fd, auto request, auto argument) {
  return result(::ioctl(narrow(fd), static_cast<unsigned long>(request), argument));
};
inline constexpr auto lseek = [](long fd, auto offset, int from) {
  return result(::lseek(narrow(fd), static_cast<off_t>(offset), from));
};
inline constexpr auto mkdirat = [](long folder, const char* name, auto mode) {
  return result(::mkdirat(narrow(folder), name, static_cast<mode_t>(mode)));
};
inline constexpr auto openat = [](long folder, const char* name, int flags, auto... mode) {
  return result(::openat(narrow(folder), name, flags, mode...));
};
inline constexpr auto pipe2 = [](int* ends, int flags) {
  if (const long error = result(::pipe(ends)); error < 0) return error;
  for (int i = 0; i < 2; ++i) {
    const long error = set_flags(ends[i], flags & ~O_CLOEXEC, (flags & O_CLOEXEC) != 0 ? FD_CLOEXEC : 0);
    if (error == 0) continue;
    ::close(ends[0]);
    ::close(ends[1]);
    return error;
  }
  return 0L;
};
// poll(2) with a limit in nanoseconds, rounded up to milliseconds; null: no limit. The time waited is not taken off.
inline constexpr auto poll = [](struct pollfd* descriptors, unsigned count, const struct timespec* limit) {
  const long ms = limit == nullptr ? -1 : limit->tv_sec * 1000 + (limit->tv_nsec + 999'999) / 1'000'000;
  return result(::poll(descriptors, count, static_cast<int>(ms)));
};
inline constexpr auto pread = [](long fd, void* into, auto bytes, auto offset) {
  return result(::pread(narrow(fd), into, portion(bytes), static_cast<off_t>(offset)));
};
inline constexpr auto pwrite = [](long fd, const void* from, auto bytes, auto offset) {
  return result(::pwrite(narrow(fd), from, portion(bytes), static_cast<off_t>(offset)));
};
inline constexpr auto read = [](long fd, void* into, auto bytes) {
  return result(::read(narrow(fd), into, portion(bytes)));
};
inline constexpr auto readlinkat = [](long folder, const char* name, char* into, auto bytes) {
  return result(::readlinkat(narrow(folder), name, into, size(bytes)));
};
inline constexpr auto renameat = [](long from, const char* name, long to, const char* new_name) {
  return result(::renameat(narrow(from), name, narrow(to), new_name));
};
inline constexpr auto unlinkat = [](long folder, const char* name, int flags) {
  return result(::unlinkat(narrow(folder), name, flags));
};
inline constexpr auto write = [](long fd, const void* from, auto bytes) {
  return result(::write(narrow(fd), from, portion(bytes)));
};

// -- Sockets. Addresses have any of the types that begin as sockaddr.

// Flags of accept4() and socket(), beside the kind of the socket.
inline constexpr int kNonBlocking = 1 << 29;
inline constexpr int kCloseOnExec = 1 << 30;
inline constexpr auto accept4 = [](long fd, void* address, socklen_t* length, int flags) {
  const long accepted = result(::accept(narrow(fd), static_cast<struct sockaddr*>(address), length));
  return with_flags(accepted, (flags & kNonBlocking) != 0 ? O_NONBLOCK : 0,
                    (flags & kCloseOnExec) != 0 ? FD_CLOEXEC : 0);
};
inline constexpr auto bind = [](long fd, const void* address, auto length) {
  return result(
      ::bind(narrow(fd), static_cast<const struct sockaddr*>(address), static_cast<socklen_t>(length)));
};
inline constexpr auto connect = [](long fd, const void* address, auto length) {
  return result(
      ::connect(narrow(fd), static_cast<const struct sockaddr*>(address), static_cast<socklen_t>(length)));
};
inline constexpr auto getpeername = [](long fd, void* address, socklen_t* length) {
  return result(::getpeername(narrow(fd), static_cast<struct sockaddr*>(address), length));
};
inline constexpr auto getsockname = [](long fd, void* address, socklen_t* length) {
  return result(::getsockname(narrow(fd), static_cast<struct sockaddr*>(address), length));
};
inline constexpr auto getsockopt = [](long fd, int level, int name, void* value, socklen_t* length) {
  return result(::getsockopt(narrow(fd), level, name, value, length));
};
inline constexpr auto listen = [](long fd, int backlog) { return result(::listen(narrow(fd), backlog)); };
inline constexpr auto recvfrom = [](long fd, void* into, auto bytes, int flags, std::nullptr_t,
                                    std::nullptr_t) {
  return result(::recv(narrow(fd), into, portion(bytes), flags));
};
inline constexpr auto sendmsg = [](long fd, const struct msghdr* message, int flags) {
  struct iovec cut{};
  const struct msghdr part = portion(*message, cut);
  return result(::sendmsg(narrow(fd), &part, flags));
};
inline constexpr auto sendto = [](long fd, const void* from, auto bytes, int flags, const void* address,
                                  auto length) {
  return result(::sendto(narrow(fd), from, portion(bytes), flags,
                         static_cast<const struct sockaddr*>(address), static_cast<socklen_t>(length)));
};
inline constexpr auto setsockopt = [](long fd, int level, int name, const void* value, auto length) {
  return result(::setsockopt(narrow(fd), level, name, value, static_cast<socklen_t>(length)));
};
inline constexpr auto shutdown = [](long fd, int how) { return result(::shutdown(narrow(fd), how)); };
inline constexpr auto socket = [](int family, int type, int protocol) {
  const long made = result(::socket(family, type & ~(kNonBlocking | kCloseOnExec), protocol));
  return with_flags(made, (type & kNonBlocking) != 0 ? O_NONBLOCK : 0,
                    (type & kCloseOnExec) != 0 ? FD_CLOEXEC : 0);
};

// -- Memory.

inline constexpr int kMapWithoutReserve =
    0;  // where the system does not decide by itself, all that is mapped counts
inline constexpr auto mmap = [](void* at, auto bytes, int protection, int flags, long fd, int offset) {
  return result(
      reinterpret_cast<std::intptr_t>(::mmap(at, size(bytes), protection, flags, narrow(fd), offset)));
};
inline constexpr auto mprotect = [](void* at, auto bytes, int protection) {
  return result(::mprotect(at, size(bytes), protection));
};
inline constexpr auto munmap = [](const void* at, auto bytes) {
  return result(::munmap(const_cast<void*>(at), size(bytes)));
};

// -- Processes and time. clock_nanosleep() reports its error by value.

#if defined(__APPLE__)
// Relative to any clock: the only use of it here.
inline constexpr auto clock_nanosleep = [](clockid_t, int, const struct timespec* time,
                                           struct timespec* left) { return result(::nanosleep(time, left)); };
#else
inline constexpr auto clock_nanosleep = [](clockid_t clock, int flags, const struct timespec* time,
                                           struct timespec* left) -> long {
  return -::clock_nanosleep(clock, flags, time, left);
};
#endif
inline constexpr auto geteuid = [] { return static_cast<long>(::geteuid()); };
inline constexpr auto getpid = [] { return static_cast<long>(::getpid()); };
inline constexpr auto getrlimit = [](auto resource, struct rlimit* limit) {
  return result(::getrlimit(static_cast<decltype(RLIMIT_NOFILE)>(resource), limit));
};
inline constexpr auto kill = [](long process, int signal) {
  return result(::kill(static_cast<pid_t>(process), signal));
};
inline constexpr auto nanosleep = [](const struct timespec* time, struct timespec* left) {
  return result(::nanosleep(time, left));
};
inline constexpr auto sched_yield = [] { return result(::sched_yield()); };

}  // namespace tuza::sys
