// The declarations on docs/guide/mistakes.md. framework/tests/mistakes_test.py compiles the table on that page.
#include <tuza/http.h>
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mistakes_page {

using namespace std::chrono_literals;

//! [declarations]
struct Job {};
bool ready();
void work(int number);
void count(int& hits);
void run_job(std::unique_ptr<Job> job);
[[nodiscard]] tuza::Result<int> find(const std::string& key);

extern int hits;
extern std::unique_ptr<Job> job;
extern tuza::Context parent;
extern tuza::Chan<int> numbers;
extern tuza::ErrorGroup group;
extern tuza::http::Router router;
extern tuza::net::Listener listener;
//! [declarations]

}  // namespace mistakes_page
