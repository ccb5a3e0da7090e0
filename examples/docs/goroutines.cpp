// The code on docs/guide/goroutines.md.
#include <tuza/tuza.h>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace goroutines_page {

using namespace std::chrono_literals;

struct Row {};
struct Database {
  long query(const std::string& text) { return static_cast<long>(text.size()); }
};
void add(const Row&) {}
void add_all(const std::vector<Row>& rows, std::size_t& total) { total += rows.size(); }
void compact() {}
int compute() { return 42; }

int first() {
  //! [run]
  return tuza::run([] {
    tuza::WaitGroup done;
    for (int i = 0; i < 3; ++i) done.go([i] { std::printf("goroutine %d\n", i); });
    done.wait();
  });
  //! [run]
}

tuza::Result<void> starting(std::size_t& total) {
  //! [go]
  tuza::go([text = std::string("moved in")] { std::puts(text.c_str()); });
  tuza::go(add_all, std::vector<Row>(3), std::ref(total));  // add_all(rows, total)
  tuza::go({.name = "compactor", .stack_bytes = 1 << 20}, [] { compact(); });

  auto started = tuza::try_go({.name = "guest"}, [] { compact(); });
  if (!started) return started;  // no memory for a stack, or no tuza::run
  //! [go]
  return {};
}

tuza::Result<void> sleeping(const tuza::Context& ctx) {
  //! [sleep]
  tuza::sleep_for(250ms);
  if (auto slept = tuza::sleep_for(ctx, 1min); !slept) return slept;  // ctx has ended
  //! [sleep]
  return {};
}

long calls_that_block(Database& database, const std::string& text, int fd) {
  //! [blocking]
  // Of unknown length. The P is kept if the call is short.
  const long rows = tuza::blocking([&] { return database.query(text); });

  // Known to take milliseconds: the P is handed off at once.
  const int status = tuza::blocking(tuza::CallLength::kLong, [] { return std::system("make"); });

  std::string buffer(4096, '\0');
  long got = 0;
  int error = 0;
  {
    const tuza::BlockingCall call;  // the same as a scope
    got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) error = errno;  // in the scope: its end may change the thread
  }
  //! [blocking]
  return rows + status + got + error;
}

void loops(const std::vector<Row>& rows) {
  //! [checkpoint]
  for (const Row& row : rows) {
    add(row);
    tuza::checkpoint();  // lets others run, if it is time
  }
  //! [checkpoint]
}

void lock_that_everybody_needs(std::mutex& table_mutex, std::map<int, int>& table, int key) {
  //! [no_preempt]
  {
    const tuza::NoPreempt keep_going;  // others wait for this lock
    const std::scoped_lock lock(table_mutex);
    ++table[key];
  }
  //! [no_preempt]
}

void other_threads() {
  //! [external]
  tuza::Chan<int> results{1};
  std::thread worker([&results] { results.send(compute()); });
  const auto answer = results.recv();  // parks the goroutine until the thread has sent
  worker.join();
  //! [external]
  (void)answer;
}

}  // namespace goroutines_page
