// Entity-tags of files.
//
// Two faults are to be avoided. A tag that depends on where the file lies (inode, time of change) differs between replicas
// with the same files, so that behind a load balancer revalidation fails and downloads start anew. A tag of size and time of
// modification alone is the same for different contents: reproducible builds give all files one time, and a file replaced by
// one of the same size would get a 304, or with If-Range a 206 that joins two versions. Only the content has neither fault:
//
//     file                                                  tag                                               strong
//     up to kTaggedInMemoryMax                              SHA-256 of the bytes that are sent from memory    yes
//     up to kTaggedWholeMax, not written lately             SHA-256 of the file                               yes
//     up to kTaggedWholeIfSetMax, settled, its time set     SHA-256 of the file                               yes
//     beyond                                                size, times, SHA-256 of samples                   once settled
//
// A digest of a file that has settled is computed once, and remembered for the version (device, inode, size, both times).
// Samples cannot show a change between them. What shows it is the time of modification, if it is true: that of the last change,
// not set afterwards to another one (the time of change is close to it). Where it has been set (rsync -t, layers of an image), a
// file is hashed up to a size that takes no more than a part of a second. Beyond, the time of change is in the tag, too:
// replicas disagree about such a file, and no tag is that of two contents. A tag is weak while a change may
// not show in the times.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tuza::http {

// Files up to here are read into memory to be sent, so that the tag is that of the very bytes.
inline constexpr std::uint64_t kTaggedInMemoryMax = 64 << 10;
// Reading and hashing that much takes some 20 ms, once for each version.
inline constexpr std::uint64_t kTaggedWholeMax = 16 << 20;
// Some 200 ms.
inline constexpr std::uint64_t kTaggedWholeIfSetMax = 256 << 20;

std::string tag_of_content(std::string_view content);
// Of an open file with that `info`. Parks: it reads the file, unless it is known.
std::string tag_of_file(int fd, const struct stat& info, std::chrono::system_clock::time_point now);

}  // namespace tuza::http
