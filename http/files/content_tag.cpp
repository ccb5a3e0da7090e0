#include <tuza/http/files/content_tag.h>
#include <tuza/netpoll/files/stat_times.h>

#include <openssl/evp.h>
#include <tuza/http/files/file_cache.h>
#include <tuza/http/files/file_content.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/singleflight.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tuza::http {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::uint64_t kSamples = 8;
constexpr std::size_t kSampleBytes = 16 << 10;
static_assert(kSamples * kSampleBytes < kTaggedWholeMax);

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1)
      throw std::bad_alloc();
  }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  // In hexadecimal. 128 bits: enough that nobody finds two contents with the same.
  std::string text() {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
    EVP_DigestFinal_ex(context_.get(), hash.data(), nullptr);
    std::string hex;
    for (std::size_t i = 0; i < 16; ++i) {
      hex += kDigits[hash[i] >> 4];
      hex += kDigits[hash[i] & 15];
    }
    return hex;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// False: the file has become shorter, or cannot be read.
bool add_part(Sha256& hash, int fd, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<char> piece(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kPiece)));
  while (bytes > 0) {
    const std::span<char> into =
        std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size())));
    if (tuza::detail::read_at(fd, into, offset) != static_cast<long>(into.size())) return false;
    hash.add({into.data(), into.size()});
    offset += into.size();
    bytes -= into.size();
  }
  return true;
}

// Of the whole, or of samples at even distances, the last one at the end. Empty: it could not be read.
std::string digest_of(int fd, std::uint64_t size, bool whole) {
  Sha256 hash;
  if (whole) return add_part(hash, fd, 0, size) ? hash.text() : std::string();
  const std::uint64_t bytes = std::min<std::uint64_t>(size, kSampleBytes);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t offset = i + 1 < kSamples ? (size - bytes) / (kSamples - 1) * i : size - bytes;
    if (!add_part(hash, fd, offset, bytes)) return {};
  }
  return hash.text();
}

struct HashVersion {
  std::size_t operator()(const FileVersion& version) const {
    return std::hash<std::uint64_t>()(version.inode * 31 + version.device) ^
           std::hash<std::int64_t>()(version.changed_ns);
  }
};

// The digests of the last files. One for the process: what a path or a FileServer is called does not matter.
class Known {
 public:
  std::optional<std::string> find(const FileVersion& version) {
    const LockGuard lock(mutex_);
    const auto found = digests_.find(version);
    return found == digests_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(const FileVersion& version, const std::string& digest) {
    const LockGuard lock(mutex_);
    if (!digests_.emplace(version, digest).second) return;
    order_.push_back(version);
    if (order_.size() <= kEntriesMax) return;
    digests_.erase(order_.front());
    order_.pop_front();
  }

 private:
  static constexpr std::size_t kEntriesMax = 4096;
  Mutex mutex_;
  std::unordered_map<FileVersion, std::string, HashVersion> digests_ TUZA_GUARDED_BY(mutex_);
  std::deque<FileVersion> order_ TUZA_GUARDED_BY(mutex_);
};

// Empty also if the file changes meanwhile.
std::string digest_of_version(int fd, const struct stat& info, bool whole) {
  std::string digest = digest_of(fd, static_cast<std::uint64_t>(info.st_size), whole);
  struct stat after{};
  if (tuza::detail::blocking_syscall(sys::fstat, fd, &after) < 0 || version_of(after) != version_of(info))
    digest.clear();
  return digest;
}

Known& known() {
  static Known& table = *new Known;  // never destroyed: goroutines may be left behind at the end
  return table;
}

// Of a settled version. Those who ask at the same time wait for the one that reads.
std::string known_digest(int fd, const struct stat& info, bool whole) {
  static auto& readers = *new singleflight::Group<FileVersion, std::string, HashVersion>;
  const FileVersion version = version_of(info);
  if (std::optional<std::string> digest = known().find(version)) return *std::move(digest);
  return readers
      .call(version,
            [&] {
              // Another reader may have ended between the look and the call.
              if (std::optional<std::string> digest = known().find(version)) return *std::move(digest);
              std::string digest = digest_of_version(fd, info, whole);
              if (!digest.empty()) known().add(version, digest);
              return digest;
            })
      .value;
}

std::string hex(std::uint64_t value) {
  std::string text;
  do text.insert(text.begin(), "0123456789abcdef"[value & 15]);
  while ((value >>= 4) != 0);
  return text;
}

std::string hex_time(const struct timespec& time) {
  return hex(static_cast<std::uint64_t>(time.tv_sec)) + "." + hex(static_cast<std::uint64_t>(time.tv_nsec));
}

// By append(): GCC 12 takes the insertion in front of a temporary for one that overlaps it, at -O3.
std::string strong_tag(std::string_view digest) { return std::string("\"").append(digest).append("\""); }

}  // namespace

std::string tag_of_content(std::string_view content) {
  Sha256 hash;
  hash.add(content);
  return strong_tag(hash.text());
}

std::string tag_of_file(int fd, const struct stat& info, std::chrono::system_clock::time_point now) {
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const bool written_lately = is_written_lately(info, now, kSettled);
  const bool settled = is_settled(info, now, kSettled);
  const bool true_time = has_true_time(info);
  const bool whole =
      !written_lately && size <= (settled && !true_time ? kTaggedWholeIfSetMax : kTaggedWholeMax);
  // Only a version whose next change shows can be remembered.
  const std::string digest = settled ? known_digest(fd, info, whole) : digest_of_version(fd, info, whole);
  if (whole && !digest.empty()) return strong_tag(digest);
  const bool changes_show = !digest.empty() && (true_time ? !written_lately : settled);
  return std::string(changes_show ? "\"" : "W/\"") + hex(size) + "-" +
         hex_time(tuza::detail::modified_at(info)) + "-" +
         (true_time ? "" : hex_time(tuza::detail::changed_at(info)) + "-") + digest + "\"";
}

}  // namespace tuza::http
