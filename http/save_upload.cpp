// Writes a part to a file that appears when it is complete.
#include <tuza/http/multipart.h>
#include <tuza/http/status_error.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/filesystem.h>

#include <openssl/rand.h>

#include <array>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

namespace tuza::http {
namespace {

std::string random_name() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw std::runtime_error("OpenSSL has no random numbers");
  }
  std::string name;
  for (const unsigned char byte : bytes) name.append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
  return name;
}

[[noreturn]] void fail(const Error& error) {
  const bool full = error.is(std::errc::no_space_on_device) || error.is(std::errc::file_too_large) ||
                    error.code() == std::error_code(EDQUOT, std::system_category());
  if (full) throw StatusError(507);
  throw std::runtime_error(error.message());
}

void require(const Result<void>& done) {
  if (!done) fail(done.error());
}

// A file under a temporary name; removed unless it was given its final name.
class PartialFile {
 public:
  PartialFile(std::string_view directory, std::uint32_t mode)
      : path_(std::string(directory) + "/.upload-" + random_name() + ".part") {
    Result<File> opened = File::open(path_, {.write = true, .exclusive = true, .mode = mode});
    if (!opened) fail(opened.error());
    file_ = *std::move(opened);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (!path_.empty()) (void)fs::remove(path_);
  }

  void write(std::string_view data) { require(file_.write_all(data)); }
  void finish(const std::string& path, bool sync) {
    if (sync) require(file_.sync());
    require(file_.close());  // some file systems report here that the disk is full
    require(fs::rename(path_, path));
    path_.clear();
  }

 private:
  std::string path_;
  File file_;
};

}  // namespace

SavedFile Part::save(std::string_view directory, const SaveOptions& options) {
  SavedFile saved{.path{}, .name = options.name.empty() ? random_name() : options.name};
  if (saved.name == "." || saved.name == ".." ||
      saved.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    throw std::invalid_argument("Part::save: no name of a file: " + saved.name);
  }
  saved.path = std::string(directory) + "/" + saved.name;
  PartialFile file(directory, options.mode);
  for (std::string_view data; !(data = read()).empty();) {
    file.write(data);
    saved.bytes += data.size();
  }
  file.finish(saved.path, options.sync);
  if (options.sync) {
    Result<File> entry = File::open(directory);  // the name, too
    if (!entry) fail(entry.error());
    require(entry->sync());
  }
  return saved;
}

}  // namespace tuza::http
