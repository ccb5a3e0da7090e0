// The times in what stat(2) tells. POSIX's names for them are not those of macOS.
#pragma once

#include <sys/stat.h>

namespace tuza::detail {

// Of the file's content.
inline const struct timespec& modified_at(const struct stat& info) {
#if defined(__APPLE__)
  return info.st_mtimespec;
#else
  return info.st_mtim;
#endif
}

// Of its content, its owner, its permissions, or its names.
inline const struct timespec& changed_at(const struct stat& info) {
#if defined(__APPLE__)
  return info.st_ctimespec;
#else
  return info.st_ctim;
#endif
}

}  // namespace tuza::detail
