#include <tuza/netpoll/process/spawn_actions.h>

namespace tuza::detail {

int close_from(posix_spawn_file_actions_t&, int) { return 0; }

const char* short_signal_name(int) { return nullptr; }

}  // namespace tuza::detail
