// Probes to a TCP peer that has said nothing for a while. One that has vanished without a word, behind a cable that was pulled, is
// an error of the calls that wait for it then: after a minute, and nine probes at intervals of 15 s without an answer.
//
// A listener's settings are those of the connections that it accepts. Errors are ignored: a connection works without.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <tuza/netpoll/socket/new_socket.h>

namespace tuza::net {

inline void keep_alive(const NewSocket& socket) {
  constexpr int kIdleSeconds = 60, kIntervalSeconds = 15, kProbes = 9;
#if defined(TCP_KEEPIDLE)
  constexpr int kIdle = TCP_KEEPIDLE;
#else  // macOS
  constexpr int kIdle = TCP_KEEPALIVE;
#endif
  socket.set(SOL_SOCKET, SO_KEEPALIVE, 1);
  socket.set(IPPROTO_TCP, kIdle, kIdleSeconds);
  socket.set(IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds);
  socket.set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

}  // namespace tuza::net
