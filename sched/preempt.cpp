#include <tuza/sched/preempt.h>

namespace tuza {

void checkpoint() {}
NoPreempt::NoPreempt() {}
NoPreempt::~NoPreempt() {}

}  // namespace tuza
