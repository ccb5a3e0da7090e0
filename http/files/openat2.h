// Opens a file beneath a folder in one call of the system's.
#pragma once

namespace tuza::http {

// `flags`: of open(2). The descriptor, or -errno: -EXDEV if the path leaves the folder, -EAGAIN if files were renamed
// meanwhile, -ENOSYS if the system has no such call. May wait for the disk; blocks the M.
long open_beneath_at_once(int folder, const char* path, int flags);

}  // namespace tuza::http
