// Why a goroutine waits: shown in dumps and in the deadlock report, in Go's words.
#pragma once

#include <cstdint>

namespace tuza {

enum class WaitReason : std::uint8_t {
  kNone,
  kSleep,
  kIoRead,
  kIoWrite,
  kWaitGroup,
  kMutex,
  kRWMutexRead,
  kRWMutexWrite,
  kSemaphore,
  kCond,
  kBarrier,
  kOnce,
  kChanSend,
  kChanReceive,
  kChanNil,
  kSelect,
  kSelectNoCases,
  kContext,
  kFuture,
  kTimer,
  kSignal,
  kTest,
};

const char* name(WaitReason reason);

}  // namespace tuza
