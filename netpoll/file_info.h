// Public header, part of <tuza/net.h>.
//
// File metadata as returned by File::stat(), fs::stat() and Directory.
//
//     if (info.type == tuza::FileType::kRegular && info.size_bytes <= 1 << 20) ...
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <chrono>
#include <cstdint>

namespace tuza {

enum class FileType : std::uint8_t {
  kRegular,
  kDirectory,
  kSymlink,
  kFifo,
  kSocket,
  kCharacterDevice,  // terminals and /dev/null, for example
  kBlockDevice,
  kUnknown,
};

struct FileInfo {
  FileType type = FileType::kUnknown;
  std::uint32_t mode = 0;        // permissions: the lower twelve bits, 0644 for example
  std::uint64_t size_bytes = 0;  // of regular files; 0 for files in /proc, whatever their content
  std::chrono::sys_time<std::chrono::nanoseconds> modified;
};

}  // namespace tuza
