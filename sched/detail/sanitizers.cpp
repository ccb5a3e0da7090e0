#include <tuza/sched/detail/sanitizers.h>

const char TUZA_SAME_SANITIZER = 0;
