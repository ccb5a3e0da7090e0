// Reports a value of an environment variable that the runtime cannot use. A runtime that starts prints it and goes on
// with the default; environment_problems() (rt/lifecycle/environment.h) collects it instead.
#pragma once

#include <tuza/sched/rt/base/print.h>

#include <string>
#include <utility>
#include <vector>

namespace tuza::rt {

// `problem` is "NAME: what is wrong", in a Line that prints nothing itself.
void report_variable(const Line& problem);

// While an object exists, problems go into it. Before a runtime starts, on the only thread.
class VariableProblems {
 public:
  VariableProblems();
  ~VariableProblems();
  VariableProblems(const VariableProblems&) = delete;
  VariableProblems& operator=(const VariableProblems&) = delete;

  [[nodiscard]] std::vector<std::string> take() { return std::move(problems_); }

 private:
  friend void report_variable(const Line& problem);
  std::vector<std::string> problems_;
};

}  // namespace tuza::rt
