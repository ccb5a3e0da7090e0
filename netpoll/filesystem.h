// Public header, part of <tuza/net.h>.
//
// Operations on files by path.
//
//     if (auto made = tuza::fs::make_directory("spool"); !made && !made.error().is(std::errc::file_exists)) {
//       return made;
//     }
//     return tuza::fs::rename("spool/new", "spool/job");
//
// A separate namespace: with `using namespace tuza`, libc's ::remove("x") would be chosen over a
// tuza::remove(), and would block without being marked as a blocking call.
//
// Paths without a leading slash are relative to the working directory of the process.
//
// Thread-safe. Every function parks; netpoll/file.h says what they block. Errors are the system's, with
// operation and path; EINVAL for a path that contains a zero byte.
#pragma once

#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/file_info.h>
#include <tuza/sched/result.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tuza::fs {

// Follows symbolic links: describes the target.
[[nodiscard]] Result<FileInfo> stat(std::string_view path);

// Removes a file, a symbolic link (its target stays) or an empty directory (ENOTEMPTY otherwise). A process
// that has the file open can continue to use it.
[[nodiscard]] Result<void> remove(std::string_view path);

// Atomic: what was at `to` is replaced (a file by a file, an empty directory by a directory), and at no time
// is `to` missing. EXDEV across file systems.
[[nodiscard]] Result<void> rename(std::string_view from, std::string_view to);

// EEXIST if `path` exists, ENOENT if its parent does not. The umask applies to `mode`.
[[nodiscard]] Result<void> make_directory(std::string_view path, std::uint32_t mode = 0777);

// All entries of a directory except "." and "..", in no particular order, held in memory. Directory iterates
// over a directory of any size.
[[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path);

}  // namespace tuza::fs
