// Attributes of Clang's thread-safety analysis: which lock guards a field, and which locks a function takes or needs.
//
//     Mutex mutex_;
//     std::vector<int> items_ TUZA_GUARDED_BY(mutex_);
//     void drop() TUZA_REQUIRES(mutex_);                          // the caller holds mutex_
//     void add(int item) { const LockGuard lock(mutex_); items_.push_back(item); }
//
// Clang checks them with -Wthread-safety; the preset `clang` makes its findings errors. Other compilers ignore them.
// libstdc++'s std::mutex and its guards (std::scoped_lock, std::unique_lock) have no attributes, so the analysis does
// not see what they lock: use LockGuard (sched/detail/lock_guard.h).
//
// The analysis follows one function at a time. It cannot follow a lock that one function takes and another, called
// by the scheduler after a switch, releases: such functions are TUZA_NO_THREAD_SAFETY_ANALYSIS, with the reason.
// Constructors and destructors are not checked: no other thread knows the object.
#pragma once

#if defined(__clang__)
#define TUZA_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TUZA_THREAD_ATTRIBUTE(x)
#endif

// -- Types: a lock, and an object that holds one for the length of its life.
#define TUZA_CAPABILITY(name) TUZA_THREAD_ATTRIBUTE(capability(name))
#define TUZA_SCOPED_CAPABILITY TUZA_THREAD_ATTRIBUTE(scoped_lockable)

// -- Fields: the lock that guards the field, or what the field points to; the order of locks.
#define TUZA_GUARDED_BY(lock) TUZA_THREAD_ATTRIBUTE(guarded_by(lock))
#define TUZA_PT_GUARDED_BY(lock) TUZA_THREAD_ATTRIBUTE(pt_guarded_by(lock))
#define TUZA_ACQUIRED_BEFORE(...) TUZA_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))

// -- Functions.
#define TUZA_REQUIRES(...) TUZA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TUZA_EXCLUDES(...) TUZA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define TUZA_ACQUIRE(...) TUZA_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TUZA_ACQUIRE_SHARED(...) TUZA_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define TUZA_TRY_ACQUIRE(...) TUZA_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define TUZA_TRY_ACQUIRE_SHARED(...) TUZA_THREAD_ATTRIBUTE(try_acquire_shared_capability(__VA_ARGS__))
#define TUZA_RELEASE(...) TUZA_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TUZA_RELEASE_SHARED(...) TUZA_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
#define TUZA_ASSERT_HELD(lock) TUZA_THREAD_ATTRIBUTE(assert_capability(lock))
#define TUZA_RETURNS_LOCK(lock) TUZA_THREAD_ATTRIBUTE(lock_returned(lock))
#define TUZA_NO_THREAD_SAFETY_ANALYSIS TUZA_THREAD_ATTRIBUTE(no_thread_safety_analysis)
