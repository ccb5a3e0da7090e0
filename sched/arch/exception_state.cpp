#include <tuza/sched/arch/exception_state.h>

#include <cxxabi.h>

#include <exception>

#if defined(_LIBCPP_VERSION)  // its header does not have what every implementation of the ABI has
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

namespace tuza::rt {

[[gnu::noinline]] ExceptionState* thread_exception_state() {
  return reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
}

}  // namespace tuza::rt
