// Reads the entries of an open directory.
//
// Thread-compatible. Allocates nothing after it has been made.
#pragma once

#include <memory>

namespace tuza::detail {

class DirectoryReader {
 public:
  struct Entry {
    const char* name = nullptr;  // until the next call; null: there are no more
    unsigned char d_type = 0;    // of <dirent.h>; DT_UNKNOWN if the file system does not report it
  };

  explicit DirectoryReader(int fd);  // which it takes over
  DirectoryReader(DirectoryReader&&) = delete;
  ~DirectoryReader();  // parks

  [[nodiscard]] int fd() const;
  // The next entry, "." and ".." among them. 0 or -errno. Parks.
  long next(Entry& entry);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tuza::detail
