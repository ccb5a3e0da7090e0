// Public header.
//
// The reason why a goroutine waits: shown in dumps and in the deadlock report, in Go's words.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstddef>
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
  kCompletion,  // waits for an operation that another library performs
  kTest,        // must stay the last one
};

inline constexpr std::size_t kWaitReasons = static_cast<std::size_t>(WaitReason::kTest) + 1;

const char* name(WaitReason reason);

}  // namespace tuza
