#include <tuza/sched/per_p.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/p.h>

namespace tuza::detail {

std::size_t current_p() {
  const rt::Enter rt;
  const rt::P* p = rt.p();
  return p == nullptr ? 0 : static_cast<std::size_t>(p->id);
}

}  // namespace tuza::detail
