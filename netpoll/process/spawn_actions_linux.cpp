#include <tuza/netpoll/process/spawn_actions.h>

#include <string.h>

namespace tuza::detail {

int close_from(posix_spawn_file_actions_t& actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(&actions, first);
}

const char* short_signal_name(int signal) { return ::sigabbrev_np(signal); }

}  // namespace tuza::detail
