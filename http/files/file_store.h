// The files below a folder, by path: from the cache, or opened.
//
// Of a FIFO or a device only the type is looked at: opening it could wake a writer, rewind a tape, or start a watchdog. A
// path is opened below the folder only (open_beneath.h).
//
// Thread-safe. find() parks: it makes blocking calls.
#pragma once

#include <tuza/http/files/file_cache.h>
#include <tuza/http/files/open_beneath.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace tuza::http {

// What a response says of all files.
struct FileRules {
  std::string cache_control;
  bool varies = false;
};

struct FoundFile {
  enum class Kind : std::uint8_t { kCached, kOpen, kFolder, kError };
  Kind kind = Kind::kError;
  FileCache::Pin cached;  // kCached: a regular file
  OpenFile open;          // kOpen: a regular file, kFolder
  struct stat info{};     // of `open`
  long error = 0;         // kError: -errno; ENXIO for what is neither a file nor a folder
  bool asked = false;     // the file system, and not only the cache

  [[nodiscard]] bool is_file() const { return kind == Kind::kCached || kind == Kind::kOpen; }
  // Of a file: when its content was changed last, in seconds since 1970.
  [[nodiscard]] std::int64_t modified_s() const;
};

class FileStore {
 public:
  FileStore(OpenFile folder, const FileCache::Limits& limits, FileRules rules)
      : folder_(std::move(folder)), cache_(limits), rules_(std::move(rules)) {}

  // `path` has no slash in front. `remember_absence`: also a file that does not exist is cached; only for paths that
  // clients cannot invent at will.
  [[nodiscard]] FoundFile find(const std::string& path, bool remember_absence = false);

  [[nodiscard]] int folder() const { return folder_.fd(); }
  [[nodiscard]] const FileRules& rules() const { return rules_; }

 private:
  [[nodiscard]] FoundFile open(const std::string& path) const;
  [[nodiscard]] bool is_unchanged(CachedFile& file, std::int64_t now_ns) const;
  [[nodiscard]] FileCache::Pin cache(const std::string& path, const FoundFile& found, std::int64_t now_ns);

  const OpenFile folder_;
  FileCache cache_;
  const FileRules rules_;
};

// What a response says of a file with that tag. The views are of the arguments, which must outlive it.
Representation representation_of(std::string etag, const struct stat& info, std::string_view content_type,
                                 const FileRules& rules);

// The content of an open file that is small enough to be sent from memory; nullopt: it is larger, or cannot be read as a
// whole. Parks.
std::optional<std::string> small_content(int fd, const struct stat& info);

}  // namespace tuza::http
