// Small files in memory, bounded in bytes and in entries.
//
// How a change is noticed: an entry counts for at most `age_max` after the file was last looked at. A reader that finds it
// older looks again (FileStore), and the identity (device, inode, size, both times) tells whether the content is the same.
// inotify would notice sooner, but needs a watch for each folder from a budget that the whole user shares, sees nothing of
// network and overlay file systems, and must be drained by a goroutine that may lag; a bounded age holds everywhere.
//
// Hits share no written memory between processors. Each P locks a lock of its own, looks the entry up in the common table,
// and counts its pin in a counter of its own. Changes of the table, which are rare, take all these locks for the moment in
// which entries are linked and unlinked. An entry that is unlinked while it is pinned is freed when a later change finds it
// unpinned; until then its bytes count, so that the bound holds for slow readers, too.
//
// Eviction is CLOCK: a hand passes over the entries, and takes the first that was not used since its last visit.
//
// Thread-safe. insert() and remove() park if another goroutine changes the table; find() does not park.
#pragma once

#include <tuza/http/files/file_content.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/sync/mutex.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

struct stat;

namespace tuza::http {

// Two equal ones are one version of one file, provided it is settled (is_settled()).
struct FileVersion {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileVersion&) const = default;
};
FileVersion version_of(const struct stat& info);

// What a FileCache knows of a path. Constant once it is in the cache, except for what says otherwise.
struct CachedFile {
  std::string path;
  bool exists = true;  // false: there was no such file
  FileVersion version;
  std::string content;
  Representation representation;  // its views are of this object, or constants
  std::string fields;             // the header lines of the whole file, without Content-Type
  // When the file was looked at last, coarse_now_ns(). Atomic: relaxed, since nothing else depends on it.
  std::atomic<std::int64_t> looked_at_ns{0};
};

class FileCache {
 public:
  struct Limits {
    std::size_t bytes_max = 0;    // of everything that the cache allocates; 0: no cache
    std::size_t entries_max = 0;  // 0: no cache
    std::size_t file_bytes_max = 0;
    std::chrono::nanoseconds age_max{0};
    std::chrono::nanoseconds settled = kSettled;  // of a version that is cached
  };

 private:
  struct Entry;

 public:
  // Keeps an entry in memory. The cache must outlive it.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)), slot_(other.slot_) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(entry_, other.entry_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Pin();
    explicit operator bool() const { return entry_ != nullptr; }
    CachedFile* operator->() const;
    CachedFile& operator*() const { return *operator->(); }

   private:
    friend class FileCache;
    Pin(Entry* entry, std::size_t slot) : entry_(entry), slot_(slot) {}
    Entry* entry_ = nullptr;
    std::size_t slot_ = 0;
  };

  explicit FileCache(const Limits& limits);
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;
  ~FileCache();

  [[nodiscard]] bool enabled() const { return limits_.bytes_max > 0 && limits_.entries_max > 0; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] bool is_fresh(const CachedFile& file, std::int64_t now_ns) const {
    return now_ns - file.looked_at_ns.load(std::memory_order_relaxed) <= limits_.age_max.count();
  }

  // Empty if the path is not in the cache. The entry may be too old: is_fresh().
  [[nodiscard]] Pin find(std::string_view path);
  // Puts the file into the cache, in place of what is known of its path. Empty if it does not fit, even without all entries
  // that nobody uses; the cache then stays as it is.
  [[nodiscard]] Pin insert(std::unique_ptr<CachedFile> file);
  void remove(std::string_view path);

  // For tests: what is allocated, pinned entries included.
  [[nodiscard]] std::size_t bytes();
  [[nodiscard]] std::size_t entries();

 private:
  struct Slot;
  struct Key {
    std::string_view path;
    std::size_t hash;
    bool operator==(const Key& other) const { return path == other.path; }
  };
  struct HashOf {
    std::size_t operator()(const Key& key) const { return key.hash; }
  };
  using Table = std::unordered_map<Key, Entry*, HashOf>;
  static Key key_of(std::string_view path) { return {path, std::hash<std::string_view>()(path)}; }
  [[nodiscard]] bool is_pinned(const Entry& entry) const;

  [[nodiscard]] std::size_t own_slot() const;
  [[nodiscard]] bool make_room(std::size_t bytes, const Key& replaced, std::vector<Entry*>& out)
      TUZA_REQUIRES(changing_);
  [[nodiscard]] Entry* advance_hand() TUZA_REQUIRES(changing_);
  void exchange(const std::vector<Entry*>& out, Table::node_type in);
  void bury(const std::vector<Entry*>& out) TUZA_REQUIRES(changing_);
  void reap() TUZA_REQUIRES(changing_);

  const Limits limits_;
  const std::size_t slot_count_;
  const std::unique_ptr<Slot[]> slots_;
  // Read under the lock of one slot, changed under those of all and under changing_.
  Table table_;
  Mutex changing_;
  std::list<Entry*> clock_ TUZA_GUARDED_BY(changing_);  // the entries of table_; the hand is at the front
  std::list<Entry*> dead_ TUZA_GUARDED_BY(changing_);   // unlinked, and pinned when last looked at
  std::size_t bytes_ TUZA_GUARDED_BY(changing_) = 0;    // of both
  std::size_t dead_bytes_ TUZA_GUARDED_BY(changing_) = 0;
};

}  // namespace tuza::http
