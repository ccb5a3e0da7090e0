// Public header, part of <tuza/net.h>.
//
// What is in a directory, entry by entry, however many there are.
//
//     auto directory = tuza::Directory::open("/var/spool/jobs");
//     if (!directory) return std::unexpected(directory.error());
//     for (;;) {
//       auto entry = directory->next();
//       if (!entry) return std::unexpected(entry.error());
//       if (!*entry) return {};                               // that was the last one
//       if ((*entry)->type == tuza::FileType::kRegular) queue((*entry)->name);
//     }
//
// fs::list() returns them all at once. The order is that of the file system: none. What is made or removed
// meanwhile may or may not be seen; everything else is seen once.
//
// Thread-compatible: one goroutine at a time. open(), next() and the destructor park; for what blocks
// meanwhile see netpoll/file.h. Can be moved; one that was moved from returns Errc::kClosed.
#pragma once

#include <tuza/netpoll/file_info.h>
#include <tuza/sched/result.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza {

struct DirectoryEntry {
  std::string name;                    // without the directory
  FileType type = FileType::kUnknown;  // of the entry itself: a link is kSymlink, wherever it leads
};

class Directory {
 public:
  // ENOTDIR if it is something else.
  static Result<Directory> open(std::string_view path);

  Directory(Directory&&) noexcept;
  Directory& operator=(Directory&&) noexcept;
  ~Directory();

  // The next entry; nothing when all have been seen. "." and ".." are left out.
  Result<std::optional<DirectoryEntry>> next();

 private:
  struct State;
  explicit Directory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuza
