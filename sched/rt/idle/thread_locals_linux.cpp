#include <tuza/sched/rt/idle/thread_locals.h>

#include <link.h>

namespace tuza::rt {
namespace {

int add_thread_locals(struct dl_phdr_info* module, std::size_t, void* sum) {
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const auto& header = module->dlpi_phdr[i];
    if (header.p_type == PT_TLS) *static_cast<std::size_t*>(sum) += header.p_memsz + header.p_align;
  }
  return 0;
}

}  // namespace

std::size_t thread_locals_on_stack() {
  std::size_t sum = 0;
  dl_iterate_phdr(&add_thread_locals, &sum);
  return sum;
}

}  // namespace tuza::rt
