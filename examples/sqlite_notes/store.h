// The notes in an SQLite database.
//
// SQLite is used unchanged, as a library that blocks: each operation is one marked blocking call, so the goroutine and
// its thread wait for the disk, and other goroutines continue. A connection belongs to one operation at a time. A pool has
// a few connections; an operation that finds none free parks until one is.
//
// Thread-safe. All operations park.
#pragma once

#include <tuza/examples/sqlite_notes/note.h>
#include <tuza/sched/time/resource_pool.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

struct sqlite3;

namespace notes {

struct StoreError {
  // kBusy: the database was locked, or no connection was free, for longer than the busy timeout; a retry may succeed.
  enum class Kind : std::uint8_t { kBusy, kFailed };
  Kind kind;
  std::string message;  // usually SQLite's
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
  // Creates the file if it does not exist.
  static Stored<std::unique_ptr<Store>> open(const StoreOptions& options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Up to `limit` notes with ids greater than `after`.
  Stored<Page> list(std::int64_t after, int limit);
  // add(), replace() and remove() return after their changes are on the disk.
  Stored<Note> add(const NoteText& text);
  // An empty optional, or false, means that there is no such note.
  Stored<std::optional<Note>> get(std::int64_t id);
  Stored<std::optional<Note>> replace(std::int64_t id, const NoteText& text);
  Stored<bool> remove(std::int64_t id);
  // Of the connections to the database.
  [[nodiscard]] tuza::ResourceStats stats() const { return connections_.stats(); }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  using Connection = std::unique_ptr<sqlite3, Close>;

  explicit Store(const StoreOptions& options);
  static tuza::Result<Connection> connect(const StoreOptions& options);
  template <class Operation>
  auto with_connection(Operation operation) -> decltype(operation(nullptr));

  const StoreOptions options_;
  tuza::ResourcePool<Connection> connections_;
};

}  // namespace notes
