#include <tuza/http/files/openat2.h>

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <cstdint>

namespace tuza::http {

long open_beneath_at_once(int folder, const char* path, int flags) {
  struct open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return sys::invoke(SYS_openat2, folder, path, &how, sizeof how);
}

}  // namespace tuza::http
