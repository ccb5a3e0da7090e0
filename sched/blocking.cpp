#include <tuza/sched/blocking.h>

namespace tuza {

BlockingCall::BlockingCall(CallLength) {}
BlockingCall::~BlockingCall() {}

}  // namespace tuza
