// The code on docs/guide/libraries.md.
#include <tuza/tuza.h>

#include <mutex>
#include <string>

namespace libraries_page {

struct Session {
  void begin() {}
  int query(const std::string&) { return 0; }
  void end() {}
};

//! [locked]
int with_state_per_thread(Session& session, tuza::Chan<std::string>& queries) {
  tuza::lock_os_thread();  // the library keeps its state in thread_locals
  session.begin();
  const auto text = queries.recv();  // parks, and continues on the same thread
  const int rows = text ? session.query(*text) : 0;
  session.end();
  tuza::unlock_os_thread();
  return rows;
}
//! [locked]

struct Statistics {
  std::mutex mutex;
  long calls = 0;
};
tuza::Mutex order;

//! [mutex]
void count(Statistics& statistics) {
  const std::scoped_lock lock(statistics.mutex);  // fine: nothing parks while it is held
  ++statistics.calls;
}

void in_order(tuza::Chan<int>& out, int value) {
  const std::scoped_lock lock(order);  // tuza::Mutex: send() may park
  out.send(value);
}
//! [mutex]

}  // namespace libraries_page
