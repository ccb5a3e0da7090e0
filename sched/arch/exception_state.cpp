#include <tuza/sched/arch/exception_state.h>

#include <cxxabi.h>

namespace tuza::rt {

[[gnu::noinline]] ExceptionState* thread_exception_state() {
  return reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

}  // namespace tuza::rt
