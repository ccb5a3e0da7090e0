#include <tuza/netpoll/poll/sendfile.h>

#include <cerrno>

namespace tuza::net {

const int kMoreFollows = 0;

// The caller reads and writes instead. (macOS and the BSDs have calls of that name, each with arguments of its own.)
long send_from_file(int, int, std::uint64_t, std::uint64_t) { return -ENOSYS; }

}  // namespace tuza::net
