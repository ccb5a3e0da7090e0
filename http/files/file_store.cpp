#include <tuza/http/files/file_store.h>
#include <tuza/netpoll/files/stat_times.h>

#include <fcntl.h>
#include <tuza/http/files/content_tag.h>
#include <tuza/http/files/content_type.h>
#include <tuza/http/files/http_date.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/netpoll/poll/descriptor_limit.h>
#include <tuza/sched/detail/coarse_clock.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace tuza::http {
namespace {

using std::chrono::system_clock;
using tuza::detail::blocking_syscall;
using Kind = FoundFile::Kind;

// True when descriptors are almost exhausted. The kernel assigns the lowest free number, so a high number
// means that few are left.
bool is_one_of_the_last(int fd) {
  return static_cast<std::size_t>(fd) + net::kDescriptorsForOthers / 2 >= net::descriptors_allowed();
}

FoundFile failed(long error) {
  FoundFile found;
  found.error = error;
  return found;
}

std::string fields_of(const Representation& representation) {
  std::string fields = "Accept-Ranges: bytes\r\n";
  if (!representation.cache_control.empty()) {
    fields.append("Cache-Control: ").append(representation.cache_control).append("\r\n");
  }
  const Validators& validators = representation.validators;
  fields.append("ETag: ").append(validators.etag).append("\r\n");
  if (validators.has_date) {
    fields.append("Last-Modified: ").append(format_http_date(validators.last_modified)).append("\r\n");
  }
  if (representation.varies) fields += "Vary: Accept-Encoding\r\n";
  return fields;
}

}  // namespace

std::optional<std::string> small_content(int fd, const struct stat& info) {
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > kTaggedInMemoryMax) return std::nullopt;
  std::string content(size, '\0');
  if (tuza::detail::read_at(fd, content, 0) != static_cast<long>(size)) return std::nullopt;
  return content;
}

Representation representation_of(std::string etag, const struct stat& info, std::string_view content_type,
                                 const FileRules& rules) {
  return {.size = static_cast<std::uint64_t>(info.st_size),
          .validators = validators_of(std::move(etag), info, system_clock::now()),
          .content_type = content_type,
          .cache_control = rules.cache_control,
          .varies = rules.varies};
}

std::int64_t FoundFile::modified_s() const {
  using namespace std::chrono;
  const nanoseconds modified = kind == Kind::kOpen
                                   ? time_of(tuza::detail::modified_at(info)).time_since_epoch()
                                   : nanoseconds(cached->version.modified_ns);
  return floor<seconds>(modified).count();
}

FoundFile FileStore::find(const std::string& path, bool remember_absence) {
  const std::int64_t now_ns = coarse_now_ns();
  FoundFile found;
  found.cached = cache_.find(path);
  if (found.cached) {
    CachedFile& file = *found.cached;
    found.asked = !cache_.is_fresh(file, now_ns);
    if (!found.asked || is_unchanged(file, now_ns)) {
      found.kind = file.exists ? Kind::kCached : Kind::kError;
      if (!file.exists) found.error = -ENOENT;
      return found;
    }
    found.cached = {};
    cache_.remove(path);
  }
  found = open(path);
  found.asked = true;
  if (!cache_.enabled()) return found;
  const bool absent = remember_absence && found.error == -ENOENT;
  if (found.kind != Kind::kOpen && !absent) return found;
  FileCache::Pin pin = cache(path, found, now_ns);
  if (!pin || absent) return found;
  found.cached = std::move(pin);
  found.kind = Kind::kCached;
  found.open = OpenFile();
  return found;
}

FoundFile FileStore::open(const std::string& path) const {
  struct stat look{};
  // May follow links out of the folder; only the type is used, and only to refuse.
  if (blocking_syscall(sys::fstatat, folder_.fd(), path.c_str(), &look, 0) == 0 && !S_ISREG(look.st_mode) &&
      !S_ISDIR(look.st_mode)) {
    return failed(-ENXIO);
  }
  const long fd = open_beneath(folder_.fd(), path);
  if (fd < 0) return failed(fd);
  FoundFile found;
  found.open = OpenFile(static_cast<int>(fd));
  if (is_one_of_the_last(found.open.fd())) return failed(-EMFILE);
  if (const long error = found.open.stat(found.info); error < 0) return failed(error);
  if (S_ISREG(found.info.st_mode)) {
    found.kind = Kind::kOpen;
  } else if (S_ISDIR(found.info.st_mode)) {
    found.kind = Kind::kFolder;
  } else {
    return failed(-ENXIO);
  }
  return found;
}

// Looks at the file again.
bool FileStore::is_unchanged(CachedFile& file, std::int64_t now_ns) const {
  struct stat info{};
  const long error = stat_beneath(folder_.fd(), file.path, info);
  const bool unchanged =
      error == 0 ? file.exists && version_of(info) == file.version : !file.exists && error == -ENOENT;
  if (unchanged) file.looked_at_ns.store(now_ns, std::memory_order_relaxed);
  return unchanged;
}

// Empty: the file cannot be cached now.
FileCache::Pin FileStore::cache(const std::string& path, const FoundFile& found, std::int64_t now_ns) {
  auto file = std::make_unique<CachedFile>();
  file->path = path;
  file->looked_at_ns.store(now_ns, std::memory_order_relaxed);
  file->exists = found.kind == Kind::kOpen;
  if (!file->exists) return cache_.insert(std::move(file));
  const auto size = static_cast<std::uint64_t>(found.info.st_size);
  // A version that is not settled could change without a sign.
  if (size > cache_.limits().file_bytes_max ||
      !is_settled(found.info, system_clock::now(), cache_.limits().settled))
    return {};
  file->version = version_of(found.info);
  file->content.resize(size);
  struct stat after{};
  if (found.open.pread(file->content, 0) != static_cast<long>(size) || found.open.stat(after) < 0 ||
      version_of(after) != file->version) {
    return {};
  }
  // A file that is small enough has the tag that it would have without the cache.
  std::string etag = size <= kTaggedInMemoryMax
                         ? tag_of_content(file->content)
                         : tag_of_file(found.open.fd(), found.info, system_clock::now());
  file->representation = representation_of(std::move(etag), found.info, content_type_of(path), rules_);
  file->fields = fields_of(file->representation);
  return cache_.insert(std::move(file));
}

}  // namespace tuza::http
