// The notes in an SQLite database.
//
// SQLite is used as it is, a library that blocks: each operation is one marked blocking call, so the
// goroutine and its thread wait for the disk, and the others go on. A connection belongs to one operation at
// a time; there are a few, and who finds none waits, parked.
//
// Thread-safe. Everything parks.
#pragma once

#include <tuza/examples/sqlite_notes/note.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/semaphore.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;

namespace notes {

struct StoreError {
  // kBusy: somebody else has locked the database for longer than the busy timeout; trying again may help.
  enum class Kind : std::uint8_t { kBusy, kFailed };
  Kind kind;
  std::string message;  // SQLite's
};

template <class T>
using Stored = std::expected<T, StoreError>;

struct StoreOptions {
  std::string path;
  int connections = 4;
  std::chrono::milliseconds busy_timeout{2000};
};

class Store {
 public:
  // Makes the file if it is not there.
  static Stored<std::unique_ptr<Store>> open(const StoreOptions& options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // Up to `limit` notes with ids greater than `after`.
  Stored<Page> list(std::int64_t after, int limit);
  // What is written is on the disk when these return.
  Stored<Note> add(const NoteText& text);
  // Nothing, or false: there is no such note.
  Stored<std::optional<Note>> get(std::int64_t id);
  Stored<std::optional<Note>> replace(std::int64_t id, const NoteText& text);
  Stored<bool> remove(std::int64_t id);

 private:
  class Lease;
  explicit Store(const StoreOptions& options) : options_(options), free_(options.connections) {}
  bool acquire();
  template <class Operation>
  auto with_connection(Operation operation) -> decltype(operation(nullptr));

  const StoreOptions options_;
  tuza::Semaphore free_;  // a permit for each of `idle_`
  tuza::Mutex mutex_;
  std::vector<sqlite3*> idle_;  // guarded by mutex_
};

}  // namespace notes
