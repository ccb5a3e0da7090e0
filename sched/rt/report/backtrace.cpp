#include <tuza/sched/rt/report/backtrace.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <tuza/sched/arch/context.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/symbols.h>
#include <unwind.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace tuza::rt {
namespace {

struct Collected {
  Backtrace& trace;
  bool in_handler = false;  // what is below the frame of a signal does not count
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* argument) {
  auto& [trace, in_handler] = *static_cast<Collected*>(argument);
  int before_instruction = 0;
  std::uintptr_t pc = _Unwind_GetIPInfo(context, &before_instruction);
  if (pc == 0 || trace.size == Backtrace::kMax) return _URC_END_OF_STACK;
  if (before_instruction != 0 && std::exchange(in_handler, false)) trace.size = 0;
  // A return address names the instruction after the call, which may belong to the next line or function.
  if (before_instruction == 0) --pc;
  trace.pcs[trace.size++] = pc;
  return _URC_NO_REASON;
}

struct Walk {
  Backtrace trace;
  Context back;
};

// Runs on the stack of the parked goroutine. No sanitizer has been told about that stack, and the compiler
// need not have aligned it at the switch.
#if defined(__x86_64__)
[[gnu::force_align_arg_pointer]]
#endif
__attribute__((no_sanitize("address", "thread", "undefined"))) void walk_here(void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  Collected collected{walk.trace};
  _Unwind_Backtrace(&collect, &collected);
  Context unused;
  context_switch(&unused, walk.back);
}

void print_name(Line& line, const char* mangled, Naming naming) {
  if (naming == Naming::kDemangled) {
    int status = 0;
    char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    if (status == 0) line << readable;
    std::free(readable);
    if (status == 0) return;
  }
  line << mangled;
}

const char* file_of(const Dl_info& info) {
  Dl_info own{};
  const bool program = dladdr(reinterpret_cast<const void*>(&tuza_context_entry), &own) != 0 &&
                       own.dli_fbase == info.dli_fbase;
  return program ? program_file(info.dli_fname) : info.dli_fname;
}

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

Backtrace backtrace_here() {
  Backtrace trace;
  Collected collected{trace};
  _Unwind_Backtrace(&collect, &collected);
  return trace;
}

Backtrace backtrace_of_interrupted() {
  Backtrace trace;
  Collected collected{trace, true};
  _Unwind_Backtrace(&collect, &collected);
  return trace;
}

Backtrace backtrace_of_parked(G& g) {
  Walk walk;
  std::array<std::byte, kFrameBytes> frame;  // saved, because the walk overwrites it
  std::memcpy(frame.data(), g.context.sp, frame.size());
  tuza_context_call(&walk.back, g.context, &walk_here, &walk);
  std::memcpy(g.context.sp, frame.data(), frame.size());
  return walk.trace;
}

void describe(Line& line, std::uintptr_t pc, Naming naming) {
  const auto* address = reinterpret_cast<const void*>(pc);
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    line << address;
    return;
  }
  const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  Symbol symbol;
  if (find_symbol(file_of(info), base, pc, symbol)) {
    print_name(line, symbol.name, naming);
    line << "+" << symbol.offset << " ";
  }
  // The argument for addr2line -e.
  (line << "(" << base_name(info.dli_fname) << "+").hex(pc - base) << ")";
}

void print(std::span<const std::uintptr_t> pcs, Naming naming) {
  for (std::size_t i = 0; i < pcs.size(); ++i) {
    Line line;
    line << "  #" << i << (i < 10 ? "  " : " ");
    describe(line, pcs[i], naming);
    line << "\n";
  }
}

}  // namespace tuza::rt
