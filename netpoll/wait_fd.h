// Public header, part of <tuza/net.h>.
//
// Waits for the descriptor of another library, so that its non-blocking calls park a goroutine instead of blocking a
// thread, and end with a Context.
//
//     while (PQisBusy(pg)) {
//       auto ready = tuza::net::wait_readable(ctx, PQsocket(pg));
//       if (!ready) return std::unexpected(ready.error());
//       PQconsumeInput(pg);
//     }
//
// The library keeps its descriptor: it is not closed, nor are its flags changed. It must stay open during the call.
// Several goroutines may wait for the same one. A wait that need not wait costs one system call, another one seven.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

namespace tuza::net {

// Waits until a read of `fd` would not block: there is data, the stream has ended, or there is an error, which the read
// then reports. Errors: the context's cause; EBADF; ENFILE and the like. Parks. Goroutines only.
[[nodiscard]] Result<void> wait_readable(const Context& ctx, int fd);
// Waits until a write to `fd` would not block, or would report an error. Otherwise the same.
[[nodiscard]] Result<void> wait_writable(const Context& ctx, int fd);
// Waits for either: for a library that must go on reading while it writes, as its peer may do the same. A wait costs three
// system calls more.
[[nodiscard]] Result<void> wait_readable_or_writable(const Context& ctx, int fd);

[[nodiscard]] inline Result<void> wait_readable(int fd) { return wait_readable(Context::background(), fd); }
[[nodiscard]] inline Result<void> wait_writable(int fd) { return wait_writable(Context::background(), fd); }

}  // namespace tuza::net
