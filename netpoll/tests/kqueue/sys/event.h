// <sys/event.h> for tests on Linux: as much of kqueue as the poller uses, on epoll (../kqueue.cpp). The values are
// FreeBSD's.
#pragma once
#pragma GCC system_header  // a function and a struct of one name, as on the systems that have them

#include <time.h>

#include <cstdint>

struct kevent {
  std::uintptr_t ident;
  short filter;
  unsigned short flags;
  unsigned int fflags;
  std::int64_t data;
  void* udata;
};

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_USER (-11)
#define EV_ADD 0x0001
#define EV_DELETE 0x0002
#define EV_ENABLE 0x0004
#define EV_DISABLE 0x0008
#define EV_CLEAR 0x0020
#define EV_RECEIPT 0x0040
#define EV_ERROR 0x4000
#define EV_EOF 0x8000
#define NOTE_TRIGGER 0x01000000u

extern "C" {
int kqueue();
int kevent(int kq, const struct kevent* changes, int changes_size, struct kevent* events, int events_size,
           const struct timespec* timeout);
}
