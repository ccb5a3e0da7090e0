// Public header, part of <tuza/net.h>.
//
// Reads the entries of a directory one at a time, whatever its size.
//
//     auto directory = tuza::Directory::open("/var/spool/jobs");
//     if (!directory) return std::unexpected(directory.error());
//     for (;;) {
//       auto entry = directory->next();
//       if (!entry) return std::unexpected(entry.error());
//       if (!*entry) return {};                               // end of the directory
//       if ((*entry)->type == tuza::FileType::kRegular) queue((*entry)->name);
//     }
//
// fs::list() returns all entries at once. The entries come in no particular order. An entry that is created
// or removed during the iteration may or may not be returned; every other entry is returned exactly once.
//
// Thread-compatible: one goroutine at a time. open(), next() and the destructor park; netpoll/file.h says
// what they block. A Directory can be moved; a moved-from Directory returns Errc::kClosed.
#pragma once

#include <tuza/netpoll/file_info.h>
#include <tuza/sched/result.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza {

struct DirectoryEntry {
  std::string name;                    // without the path of the directory
  FileType type = FileType::kUnknown;  // of the entry itself: a link is kSymlink, whatever its target
};

class Directory {
 public:
  // ENOTDIR if `path` is not a directory.
  [[nodiscard]] static Result<Directory> open(std::string_view path);
  // Takes over a directory that is open for reading, and has not been read yet. `path`: for errors.
  [[nodiscard]] static Directory adopt(int fd, std::string_view path);

  Directory(Directory&&) noexcept;
  Directory& operator=(Directory&&) noexcept;
  ~Directory();

  // The next entry, or nullopt at the end. "." and ".." are left out.
  [[nodiscard]] Result<std::optional<DirectoryEntry>> next();

 private:
  struct State;
  explicit Directory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tuza
