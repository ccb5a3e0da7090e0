// A descriptor that stands for both directions of another one.
#pragma once

namespace tuza::net {

// A new descriptor that is readable while `fd` is readable or writable; -errno, -ENOSYS where there is none of the kind.
long descriptor_for_either(int fd);

}  // namespace tuza::net
