#include <tuza/sched/tests/testing.h>
