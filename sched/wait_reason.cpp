#include <tuza/sched/wait_reason.h>

namespace tuza {

const char* name(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNone: return "no reason given";
    case WaitReason::kSleep: return "sleep";
    case WaitReason::kIoRead: return "IO wait (read)";
    case WaitReason::kIoWrite: return "IO wait (write)";
    case WaitReason::kWaitGroup: return "sync.WaitGroup.wait";
    case WaitReason::kMutex: return "sync.Mutex.lock";
    case WaitReason::kSemaphore: return "semacquire";
    case WaitReason::kSignal: return "signal wait";
    case WaitReason::kTest: return "test";
  }
  return "unknown";
}

}  // namespace tuza
