#include <tuza/sched/rt/lifecycle/environment.h>

#include <tuza/sched/rt/base/variable_problem.h>
#include <tuza/sched/rt/report/debug_options.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/slice_options.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tuza::rt {

std::int32_t procs_from_environment() {
  const char* text = std::getenv("TUZA_MAXPROCS");
  if (text == nullptr || *text == '\0') return 0;
  std::int32_t n = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), n);
  if (error == std::errc{} && *end == '\0' && n >= 1 && n <= kMaxProcsLimit) return n;
  Line problem(Line::kNowhere);
  problem << "TUZA_MAXPROCS: expected a number from 1 to " << kMaxProcsLimit << ", not '" << text << "'";
  report_variable(problem);
  return 0;
}

std::vector<std::string> environment_problems() {
  VariableProblems problems;
  (void)procs_from_environment();
  (void)SliceOptions::from_environment();
  (void)DebugOptions::from_environment();
  return problems.take();
}

}  // namespace tuza::rt
