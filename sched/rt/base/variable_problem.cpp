#include <tuza/sched/rt/base/variable_problem.h>

namespace tuza::rt {
namespace {

VariableProblems* g_collecting =
    nullptr;  // accessed before a runtime starts, by the only thread, and while one starts

}  // namespace

VariableProblems::VariableProblems() { g_collecting = this; }
VariableProblems::~VariableProblems() { g_collecting = nullptr; }

void report_variable(const Line& problem) {
  if (g_collecting != nullptr) {
    g_collecting->problems_.emplace_back(problem.text());
  } else {
    Line() << "tuza: " << problem.text() << "; ignored\n";
  }
}

}  // namespace tuza::rt
