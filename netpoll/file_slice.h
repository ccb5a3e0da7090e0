// Public header, part of <tuza/net.h>.
//
// A part of an open file, for Conn::send_file().
//
//     const tuza::File::Number number(file);
//     tuza::net::FileSlice slice{number.fd(), 0, size};
//     if (const auto sent = conn.send_file(slice); !sent) ...
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstdint>

namespace tuza::net {

struct FileSlice {
  int fd = -1;               // open for reading for as long as the slice is used
  std::uint64_t offset = 0;  // in bytes from the beginning of the file
  std::uint64_t length = 0;  // in bytes
};

}  // namespace tuza::net
