#include <tuza/sched/rt/memory/stack_arena.h>

#include <sys/resource.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/mapping.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/memory/page_advice.h>

#include <algorithm>

namespace tuza::rt {
namespace {

// Counts the guards of the whole process, not of one runtime: the guards of a runtime whose stacks could not
// be unmapped stay.
std::atomic<std::size_t> g_protected{0};

// 0: there is no limit.
std::size_t address_space_limit() {
  struct rlimit limit{};
  if (sys::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  return static_cast<std::size_t>(limit.rlim_cur);
}

std::size_t kept_for_others(std::size_t limit) {
  return limit == 0 ? 0 : std::clamp(limit / 8, std::size_t{4} << 20, std::size_t{64} << 20);
}

// Maps `bytes` if `more` could be mapped besides. (Who asks for memory just then, and needs more than is left beside both, is
// refused. That lasts a system call, and happens only next to the limit.)
void* map_pages_leaving(std::size_t more, std::size_t bytes) {
  void* at = map_pages(bytes + more);
  if (at != nullptr && more != 0) unmap_pages(static_cast<std::byte*>(at) + bytes, more);
  return at;
}

std::size_t guards_allowed() {
  constexpr std::size_t kMapsPerGuard = 2;
  static const std::size_t allowed = mappings_max() / 2 / kMapsPerGuard;
  return allowed;
}

void say_no_guards() {
  static std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;
  Line text(Line::kNowhere);
  text << "tuza: new goroutine stacks have no guard pages from here on: this kernel has no "
          "MADV_GUARD_INSTALL, and mprotect has failed or would use more than half of "
          "vm.max_map_count (guards protect "
       << g_protected.load(std::memory_order_relaxed) << " stacks)";
  log_line(LogLevel::kWarning, text.text());
}

}  // namespace

StackArenas::~StackArenas() {
  g_protected.fetch_sub(protected_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for (std::size_t i = 0; i < arena_count_; ++i) {
    unmap_pages(reinterpret_cast<void*>(arenas_[i].low), arenas_[i].bytes);
  }
  unmap_pages(arenas_, kArenasMax * sizeof *arenas_);
}

bool StackArenas::add_arena(ClassState& state, std::size_t stack_bytes, Claim claim) {
  const LockGuard lock(arenas_mutex_);
  if (arenas_ == nullptr) arenas_ = static_cast<Arena*>(map_pages(kArenasMax * sizeof *arenas_));
  if (arenas_ == nullptr || arena_count_ == kArenasMax) return false;
  const std::size_t small = std::max(stack_bytes, kSmallArenaBytes);
  const std::size_t limit = address_space_limit();
  const std::size_t leave = claim == Claim::kMay ? kept_for_others(limit) : 0;
  void* at = nullptr;
  std::size_t bytes = 0;
  for (const std::size_t wanted : {limit != 0 ? small : kArenaBytes, small, stack_bytes}) {
    bytes = wanted;
    if ((at = map_pages_leaving(leave, bytes)) != nullptr) break;
  }
  if (at == nullptr) return false;
  refuse_huge_pages(at, bytes);
  state.next = reinterpret_cast<std::uintptr_t>(at);
  state.end = state.next + bytes;
  arenas_[arena_count_++] = {state.next, bytes};
  return true;
}

bool StackArenas::install_guard(std::uintptr_t at) {
  void* low = reinterpret_cast<void*>(at);
  if (guard_mode_ == GuardMode::kAdvise) {
    if (advise_guard(low, kGuardBytes)) return true;
    guard_mode_ = GuardMode::kProtect;
  }
  if (guard_mode_ == GuardMode::kProtect) {
    if (protect(low)) return true;
    guard_mode_ = GuardMode::kNone;
    say_no_guards();
  }
  return false;
}

bool StackArenas::protect(void* low) {
  const bool allowed = g_protected.fetch_add(1, std::memory_order_relaxed) < guards_allowed();
  if (allowed && sys::mprotect(low, kGuardBytes, PROT_NONE) == 0) {
    protected_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  g_protected.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

Stack StackArenas::carve(std::uint8_t stack_class, Claim claim) {
  ClassState& state = classes_[stack_class];
  const std::size_t bytes = kStackClassBytes[stack_class];
  Stack stack;
  std::size_t number = 0;
  {
    const LockGuard lock(state.mutex);
    if (state.next == state.end && !add_arena(state, bytes, claim)) return stack;
    stack.guard_low = state.next;
    state.next += bytes;
    number = state.carved++;
  }
  stack.stack_class = stack_class;
  stack.guarded = install_guard(stack.guard_low);
  stack.low = stack.guard_low + (stack.guarded ? kGuardBytes : 0);
  stack.top = stack.guard_low + bytes - (number % kColours) * kColourBytes;
  if (on_valgrind_) stack.valgrind.begins(stack.low, stack.top);
  return stack;
}

StackArenas::Carved StackArenas::carved() {
  Carved sum{0, 0};
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const LockGuard lock(classes_[c].mutex);
    sum.stacks += classes_[c].carved;
    sum.bytes += classes_[c].carved * kStackClassBytes[c];
  }
  return sum;
}

void StackArenas::trim(Stack& stack) {
  const std::uintptr_t end = stack.guard_low + kStackClassBytes[stack.stack_class];
  give_back_pages(reinterpret_cast<void*>(stack.low), end - stack.low);
  stack.dirty = false;
}

}  // namespace tuza::rt
