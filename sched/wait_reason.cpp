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
    case WaitReason::kRWMutexRead: return "sync.RWMutex.lock_shared";
    case WaitReason::kRWMutexWrite: return "sync.RWMutex.lock";
    case WaitReason::kSemaphore: return "semacquire";
    case WaitReason::kCond: return "sync.Cond.wait";
    case WaitReason::kBarrier: return "barrier wait";
    case WaitReason::kOnce: return "sync.Once";
    case WaitReason::kChanSend: return "chan send";
    case WaitReason::kChanReceive: return "chan receive";
    case WaitReason::kChanNil: return "chan (nil chan)";
    case WaitReason::kSelect: return "select";
    case WaitReason::kSelectNoCases: return "select (no cases)";
    case WaitReason::kContext: return "context wait";
    case WaitReason::kFuture: return "future wait";
    case WaitReason::kTimer: return "timer wait";
    case WaitReason::kSignal: return "signal wait";
    case WaitReason::kCompletion: return "completion wait";
    case WaitReason::kTest: return "test";
  }
  return "unknown";
}

}  // namespace tuza
