// Public header, part of <tuza/net.h>.
//
// What is done to files by their path.
//
//     if (auto made = tuza::fs::make_directory("spool"); !made && !made.error().is(std::errc::file_exists)) {
//       return made;
//     }
//     return tuza::fs::rename("spool/new", "spool/job");
//
// In a namespace of its own: ::remove("x") of libc would win over a remove() that `using namespace tuza`
// brings, and would block without a mark.
//
// Paths that do not begin with a slash begin in the working directory of the process.
//
// Thread-safe. Everything parks; for what blocks meanwhile see netpoll/file.h. Errors are what the system
// says, with operation and path; EINVAL for a path with a zero in it.
#pragma once

#include <tuza/netpoll/directory.h>
#include <tuza/netpoll/file_info.h>
#include <tuza/sched/result.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tuza::fs {

// Of what a link leads to, if it is one.
Result<FileInfo> stat(std::string_view path);

// A file, a link (what it leads to stays) or an empty directory (ENOTEMPTY if it is not). Who has the file
// open can go on using it.
Result<void> remove(std::string_view path);

// At once for everybody: what was at `to` is replaced (a file by a file, an empty directory by a directory),
// and at no time is nothing there. EXDEV between file systems.
Result<void> rename(std::string_view from, std::string_view to);

// EEXIST if anything is there, ENOENT if its parent is missing. `mode` is less the umask.
Result<void> make_directory(std::string_view path, std::uint32_t mode = 0777);

// All that is in a directory but "." and "..", in no order, in memory: Directory goes through one of any
// size.
Result<std::vector<DirectoryEntry>> list(std::string_view path);

}  // namespace tuza::fs
