// The folder that a path names, looked up again while it is served.
//
// A new version of a site comes as another folder under the same path: a symbolic link is switched (ln -sfn, git-sync,
// Capistrano), or a build deletes and makes its output folder. So the path is looked up again (one stat call) when a request
// has to ask the file system anyway, and otherwise every `look_every`. If it names another folder, a new FileStore takes the
// place of the old one, with a cache of its own: a request keeps the store that it began with, and so never gets one part
// from the old folder and another from the new. While the path names no folder, the last one is served.
//
// Requests share no written memory between processors: each P has a pointer of its own, with a count of its own.
//
// Thread-safe. All functions may park: they make blocking calls.
#pragma once

#include <sys/types.h>
#include <tuza/http/files/file_store.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/sync/mutex.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuza::http {

class ServedFolder {
 public:
  // Throws std::system_error if the folder cannot be opened. A relative path is relative to the working directory of now.
  ServedFolder(std::string_view path, const FileCache::Limits& limits, FileRules rules,
               std::chrono::nanoseconds look_every);
  ServedFolder(const ServedFolder&) = delete;
  ServedFolder& operator=(const ServedFolder&) = delete;
  ~ServedFolder();

  [[nodiscard]] std::shared_ptr<FileStore> files();
  // Looks the path up now. False: it names another folder than that of `store`, and files() has another store.
  [[nodiscard]] bool still_names(const FileStore& store);

 private:
  static constexpr std::size_t kSlots = 16;
  struct alignas(64) Slot {
    rt::SpinLock lock;
    std::shared_ptr<FileStore> store;
  };
  [[nodiscard]] std::shared_ptr<FileStore> current();
  void look(std::int64_t now_ns);
  void serve(OpenFile folder, const struct stat& info);

  const std::string path_;
  const FileCache::Limits limits_;
  const FileRules rules_;
  const std::chrono::nanoseconds look_every_;
  // Of the folder that is served. Relaxed: a reader that sees half of a change takes changing_, and looks again.
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
  std::atomic<std::int64_t> looked_at_ns_{0};  // relaxed: nothing else depends on it
  Mutex changing_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace tuza::http
