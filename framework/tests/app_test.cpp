// App within a process that lives on.
#include <tuza/framework/app.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <tuza/sched/go.h>
#include <tuza/sched/tests/children.h>
#include <unistd.h>

#include <array>
#include <string>

namespace tuza {
namespace {

TEST(AppTest, OneMayRunAfterTheOther) {
  const auto ended = testing::in_fork([] {
    for (int i = 0; i < 2; ++i) {
      App app("twice");
      std::array<std::string, 3> words{"twice", "--listen", "127.0.0.1:0"};
      std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
      const int status = app.run(3, arguments.data(), [] { go([] { ::kill(::getpid(), SIGTERM); }); });
      if (status != 0) ::_exit(2 + i);
    }
    ::raise(SIGTERM);  // comes too late to be the cause of the end
    ::_exit(0);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza
