// The code on docs/guide/files.md.
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <array>
#include <string>
#include <string_view>

namespace files_page {

void queue(const std::string&) {}

//! [read]
tuza::Result<std::string> message_of_the_day() {
  auto file = tuza::File::open("/etc/motd");
  if (!file) return std::unexpected(file.error());  // "open /etc/motd: No such file or directory"
  return file->read_all();                          // at most 16 MiB, or as much as its argument allows
}
//! [read]

//! [write]
tuza::Result<void> note(std::string_view line) {
  auto log = tuza::File::open("visits.log", {.read = false, .append = true, .create = true});
  if (!log) return std::unexpected(log.error());
  if (auto written = log->write_all(line); !written) return written;
  if (auto stored = log->sync_data(); !stored) return stored;  // it survives a power failure
  return log->close();
}
//! [write]

//! [replace]
// Readers see the old file or the new one, never a part.
tuza::Result<void> replace(const std::string& path, std::string_view content) {
  auto file = tuza::File::create(path + ".new");
  if (!file) return std::unexpected(file.error());
  if (auto written = file->write_all(content); !written) return written;
  if (auto stored = file->sync(); !stored) return stored;
  if (auto closed = file->close(); !closed) return closed;
  return tuza::fs::rename(path + ".new", path);
}
//! [replace]

//! [directory]
tuza::Result<void> scan_jobs() {
  auto directory = tuza::Directory::open("/var/spool/jobs");
  if (!directory) return std::unexpected(directory.error());
  for (;;) {
    auto entry = directory->next();
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};  // that was the last one
    if ((*entry)->type == tuza::FileType::kRegular) queue((*entry)->name);
  }
}
//! [directory]

tuza::Result<void> make_spool() {
  //! [make]
  if (auto made = tuza::fs::make_directory("spool"); !made && !made.error().is(std::errc::file_exists)) {
    return made;
  }
  //! [make]
  return {};
}

}  // namespace files_page
