// A library that held_mutex_test.cpp opens while goroutines run.
#include <pthread.h>

extern "C" int late_lock(pthread_mutex_t* mutex) { return pthread_mutex_lock(mutex); }
extern "C" int late_unlock(pthread_mutex_t* mutex) { return pthread_mutex_unlock(mutex); }
