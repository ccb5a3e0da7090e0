#include <tuza/netpoll/process/spawn_actions.h>

#include <fcntl.h>

namespace tuza::detail {

#if defined(O_SEARCH)
const int kOpenToEnter = O_SEARCH;
#else
const int kOpenToEnter = O_RDONLY;
#endif

int close_from(posix_spawn_file_actions_t&, int) { return 0; }

const char* short_signal_name(int) { return nullptr; }

}  // namespace tuza::detail
