#include <tuza/netpoll/poll/either.h>

#include <cerrno>

namespace tuza::net {

long descriptor_for_either(int) { return -ENOSYS; }

}  // namespace tuza::net
