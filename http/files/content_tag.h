// Entity-tags of files.
//
// Two faults are to be avoided. A tag that depends on where the file lies (inode, time of change) differs between replicas
// with the same files, so that behind a load balancer revalidation fails and downloads start anew. A tag of size and time of
// modification alone is the same for different contents: reproducible builds give all files one time, and a file replaced by
// one of the same size would get a 304, or with If-Range a 206 that joins two versions. Only the content has neither fault:
//
//     size                          tag                                                    strong
//     up to kTaggedInMemoryMax      SHA-256 of the bytes that are sent from memory         yes
//     up to kTaggedWholeMax         SHA-256 of the file, if it has settled                 yes
//     beyond, or not settled        size, time and SHA-256 of samples of the content       see below
//
// A digest of a file that has settled is computed once, and remembered for the version (device, inode, size, both times).
// A sampled tag cannot know about a change between its samples. It is strong if the time of modification is true: settled, and
// not set afterwards to another one (the time of change is close to it). Then no other content can have the same tag as a
// strong one: to get that size and time it would have to be set, which changes the time of change. It is weak otherwise, so
// that no bytes are joined.
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

std::string tag_of_content(std::string_view content);
// Of an open file with that `info`. Parks: it reads the file, unless it is known.
std::string tag_of_file(int fd, const struct stat& info, std::chrono::system_clock::time_point now);

}  // namespace tuza::http
