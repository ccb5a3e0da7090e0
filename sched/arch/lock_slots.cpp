#include <tuza/sched/arch/lock_slots.h>

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <tuza/sched/arch/calls.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace tuza::rt {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t kSlotTypes[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr std::uint64_t kSlotTypes[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#endif

struct Relocations {
  const ElfW(Rela) * first = nullptr;
  std::size_t bytes = 0;

  [[nodiscard]] std::span<const ElfW(Rela)> all() const {
    return {first, first == nullptr ? 0 : bytes / sizeof(ElfW(Rela))};
  }
};

// What the dynamic section of an object file says.
struct Object {
  explicit Object(const dl_phdr_info& info);

  [[nodiscard]] const char* name_of(const ElfW(Rela) & relocation) const {
    const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(relocation.r_info)];
    return symbol.st_shndx == SHN_UNDEF ? names + symbol.st_name : "";
  }

  ElfW(Addr) base;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  Relocations data, calls;
  // The pages that the loader has made read-only after it had filled them.
  std::uintptr_t read_only = 0, read_only_end = 0;
};

Object::Object(const dl_phdr_info& info) : base(info.dlpi_addr) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const ElfW(Dyn)* entry = nullptr;
  for (const auto& segment : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
    const std::uintptr_t at = base + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(at);
    if (segment.p_type != PT_GNU_RELRO) continue;
    read_only = at & ~(page - 1);
    read_only_end = (at + segment.p_memsz) & ~(page - 1);
  }
  // glibc has added the base to these addresses, but not in an object that it did not load: the vDSO.
  const auto address = [this](const ElfW(Dyn) & of) {
    return of.d_un.d_ptr < base ? of.d_un.d_ptr + base : of.d_un.d_ptr;
  };
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols = reinterpret_cast<const ElfW(Sym)*>(address(*entry)); break;
      case DT_STRTAB: names = reinterpret_cast<const char*>(address(*entry)); break;
      case DT_RELA: data.first = reinterpret_cast<const ElfW(Rela)*>(address(*entry)); break;
      case DT_RELASZ: data.bytes = entry->d_un.d_val; break;
      case DT_JMPREL: calls.first = reinterpret_cast<const ElfW(Rela)*>(address(*entry)); break;
      case DT_PLTRELSZ: calls.bytes = entry->d_un.d_val; break;
      default: break;
    }
  }
}

// Other threads read the slot meanwhile.
bool write_slot(const Object& object, std::uintptr_t& slot, std::uintptr_t value) {
  const auto at = reinterpret_cast<std::uintptr_t>(&slot);
  const bool protect = at >= object.read_only && at < object.read_only_end;
  const auto allow = [&object](int access) {
    return sys::mprotect(reinterpret_cast<void*>(object.read_only), object.read_only_end - object.read_only,
                         access) == 0;
  };
  if (protect && !allow(PROT_READ | PROT_WRITE)) return false;
  std::atomic_ref(slot).store(value, std::memory_order_release);
  if (protect) allow(PROT_READ);
  return true;
}

struct Search {
  std::span<const Replacement> replacements;
  void (*changed)();
  ReplacedSlots slots{};

  void visit(const Object& object, const ElfW(Rela) & relocation) {
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type != kSlotTypes[0] && type != kSlotTypes[1] && type != kSlotTypes[2]) return;
    const char* name = object.name_of(relocation);
    if (std::strncmp(name, "pthread_", 8) != 0) return;
    for (const Replacement& replacement : replacements) {
      if (std::strcmp(name, replacement.name) != 0) continue;
      auto& slot = *reinterpret_cast<std::uintptr_t*>(object.base + relocation.r_offset);
      if (std::atomic_ref(slot).load(std::memory_order_relaxed) == replacement.function) return;
      ++(write_slot(object, slot, replacement.function) ? slots.changed : slots.refused);
      return;
    }
  }
};

int visit_object(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const Object object(*info);
  if (object.symbols == nullptr || object.names == nullptr) return 0;
  const int before = search.slots.changed;
  for (const auto& relocation : object.calls.all()) search.visit(object, relocation);
  for (const auto& relocation : object.data.all()) search.visit(object, relocation);
  if (search.slots.changed != before) search.changed();
  return 0;
}

}  // namespace

ReplacedSlots replace_slots(std::span<const Replacement> replacements, void (*changed)()) {
  Search search{replacements, changed};
  ::dl_iterate_phdr(&visit_object, &search);
  return search.slots;
}

}  // namespace tuza::rt
