#include <tuza/sched/rt/base/symbols.h>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tuza/sched/arch/calls.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>

namespace tuza::rt {
namespace {

// A file mapped for reading, while this object lives.
class MappedFile {
 public:
  explicit MappedFile(const char* path) {
    const long fd = sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const long end = sys::lseek(fd, 0, SEEK_END);
    const long at = end <= 0 ? -1 : sys::mmap(nullptr, end, PROT_READ, MAP_PRIVATE, fd, 0);
    sys::close(fd);
    if (at < 0 && at > -4096) return;
    data_ = reinterpret_cast<const std::byte*>(at);
    size_ = static_cast<std::size_t>(end);
  }
  ~MappedFile() {
    if (data_ != nullptr) sys::munmap(data_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` objects at `offset`; null if the file is shorter.
  template <class T>
  const T* at(std::uint64_t offset, std::uint64_t count = 1) const {
    if (data_ == nullptr || offset > size_ || count > (size_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(data_ + offset);
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

bool search_table(const MappedFile& file, const ElfW(Shdr) & table, const ElfW(Shdr) & strings,
                  std::uint64_t address, Symbol& symbol) {
  const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
  const auto* symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
  const auto* names = file.at<char>(strings.sh_offset, strings.sh_size);
  if (symbols == nullptr || names == nullptr) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto& s = symbols[i];
    if ((s.st_info & 0xf) != STT_FUNC || s.st_shndx == SHN_UNDEF) continue;
    if (address < s.st_value || address - s.st_value >= s.st_size || s.st_name >= strings.sh_size) continue;
    const std::size_t length = strnlen(names + s.st_name, strings.sh_size - s.st_name);
    const std::size_t n = length < sizeof symbol.name ? length : sizeof symbol.name - 1;
    std::memcpy(symbol.name, names + s.st_name, n);
    symbol.name[n] = '\0';
    symbol.offset = address - s.st_value;
    return true;
  }
  return false;
}

}  // namespace

bool find_symbol(const char* path, std::uintptr_t base, std::uintptr_t address, Symbol& symbol) {
  const MappedFile file(path);
  const auto* header = file.at<ElfW(Ehdr)>(0);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* sections = file.at<ElfW(Shdr)>(header->e_shoff, header->e_shnum);
  if (sections == nullptr) return false;
  // Addresses in the file are relative to its load address, except in programs linked to a fixed address.
  const std::uint64_t relative = header->e_type == ET_DYN ? address - base : address;
  for (const unsigned wanted : {unsigned{SHT_SYMTAB}, unsigned{SHT_DYNSYM}}) {
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type != wanted || sections[i].sh_link >= header->e_shnum) continue;
      if (search_table(file, sections[i], sections[sections[i].sh_link], relative, symbol)) return true;
    }
  }
  return false;
}

const char* program_file(const char*) { return "/proc/self/exe"; }

}  // namespace tuza::rt
