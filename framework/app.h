// Public header.
//
// A service that an operator can run: settings, logging, listeners, signals, a graceful end.
//
//     int main(int argc, char** argv) {
//       tuza::App app("hello");
//       return app.run(argc, argv, [&app] {
//         app.router().handle("GET /", [](tuza::http::Request&, tuza::http::ResponseWriter& res) {
//           res.text("Hello!\n");
//         });
//       });
//     }
//
// The program then has --config FILE, --listen ADDRESS, --set KEY=VALUE, --check-config, --print-config and
// --help; its settings are those of conf/production.toml, and its own:
//
//     const auto database = app.setting("notes.database", "notes.db", "Where the notes are kept");
//     ... open(*database) ...        // once it runs
//
// SIGTERM and SIGINT end it gracefully, a second one at once; SIGHUP reads certificates, log.level and the
// log file again; SIGQUIT writes all goroutines to standard error. Under systemd it says when it is ready,
// and takes sockets that systemd has opened.
//
// Exit status: 0 after everything was finished, 1 if it could not start, or something had to be cut off in
// the end, 2 if a setting or the command line is wrong.
//
// Thread-compatible: made and configured in main; while it runs, goroutines may call what is const.
#pragma once

#include <tuza/http/router.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tuza {

namespace config {
class Config;
struct Key;
}  // namespace config

// A setting of the program's own. Its value is there when the function given to App::run is called.
template <class T>
class Setting {
 public:
  [[nodiscard]] const T& operator*() const { return *value_; }
  [[nodiscard]] const T* operator->() const { return value_.get(); }

 private:
  friend class App;
  explicit Setting(T standard) : value_(std::make_shared<T>(std::move(standard))) {}
  std::shared_ptr<T> value_;
};

struct Bytes {
  std::int64_t count = 0;
};

template <class T>
struct Range {
  T min, max;
};

class App {
 public:
  // `name` is used in messages.
  explicit App(std::string name);
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  // -- Before run(). A name is section.key, of small letters, digits and underscores; `doc` one line. In the
  // environment "notes.database" is TUZA_NOTES_DATABASE. Throws std::invalid_argument if there is one of
  // that name, or the default is out of range.

  template <std::same_as<bool> T>
  Setting<bool> setting(std::string_view name, T standard, std::string_view doc) {
    return add(name, bool{standard}, doc);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Setting<std::int64_t> setting(std::string_view name, T standard, std::string_view doc,
                                Range<std::int64_t> range = {0, std::numeric_limits<std::int64_t>::max()},
                                std::string_view unit = "") {
    return add(name, static_cast<std::int64_t>(standard), doc, range, unit);
  }
  Setting<std::chrono::milliseconds> setting(std::string_view name, std::chrono::milliseconds standard,
                                             std::string_view doc,
                                             Range<std::chrono::milliseconds> range = {
                                                 std::chrono::milliseconds(0), std::chrono::hours(24)}) {
    return add(name, standard, doc, range);
  }
  Setting<Bytes> setting(std::string_view name, Bytes standard, std::string_view doc,
                         Range<Bytes> range = {{0}, {std::int64_t{1} << 50}}) {
    return add(name, standard, doc, range);
  }
  Setting<std::string> setting(std::string_view name, std::string standard, std::string_view doc) {
    return add(name, std::move(standard), doc);
  }
  Setting<std::vector<std::string>> setting(std::string_view name, std::vector<std::string> standard,
                                            std::string_view doc) {
    return add(name, std::move(standard), doc);
  }

  // Another default for a setting of Tuza's, as text: set_default("shutdown.timeout", "1s"). Throws
  // std::invalid_argument.
  void set_default(std::string_view name, std::string_view value);

  // -- In the function given to run().

  // Which handler answers what; requests are answered once the function has returned.
  [[nodiscard]] http::Router& router();

  // -- From then on.

  // The end has begun: /readyz says 503.
  [[nodiscard]] bool draining() const;

  // Reads the settings and serves until the end; returns the exit status. `set_up` is called as the first
  // goroutine, before anything listens, and returns nothing or a Result<void>; an error, or an exception, is
  // printed on one line, and the status is 1. What handlers use must outlive run(): let it live in main.
  // Once; from main, with no other threads. Blocks.
  template <std::invocable F>
  int run(int argc, char** argv, F set_up) {
    return run_with(argc, argv, [&set_up]() -> Result<void> {
      if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
        set_up();
        return {};
      } else {
        return set_up();
      }
    });
  }

 private:
  struct State;
  using SetUp = std::move_only_function<Result<void>()>;

  Setting<bool> add(std::string_view name, bool standard, std::string_view doc);
  Setting<std::int64_t> add(std::string_view name, std::int64_t standard, std::string_view doc,
                            Range<std::int64_t> range, std::string_view unit);
  Setting<std::chrono::milliseconds> add(std::string_view name, std::chrono::milliseconds standard,
                                         std::string_view doc, Range<std::chrono::milliseconds> range);
  Setting<Bytes> add(std::string_view name, Bytes standard, std::string_view doc, Range<Bytes> range);
  Setting<std::string> add(std::string_view name, std::string standard, std::string_view doc);
  Setting<std::vector<std::string>> add(std::string_view name, std::vector<std::string> standard,
                                        std::string_view doc);
  template <class T>
  Setting<T> declare(config::Key key, T standard, T (*read)(const config::Config&, std::string_view));
  int run_with(int argc, char** argv, SetUp set_up);

  std::unique_ptr<State> state_;
};

}  // namespace tuza
