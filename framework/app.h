// Public header.
//
// A service that an operator can run: settings, logging, listeners, signals, graceful shutdown.
//
//     int main(int argc, char** argv) {
//       tuza::App app("hello");
//       return app.run(argc, argv, [&app] {
//         app.router().handle("GET /{$}", [](tuza::http::Request&, tuza::http::ResponseWriter& res) {
//           res.text("Hello!\n");
//         });
//       });
//     }
//
// The program accepts --config FILE, --listen ADDRESS, --set KEY=VALUE, --check-config, --print-config, --version
// and --help. It has the settings listed in conf/production.toml, and its own:
//
//     const auto database = app.setting("notes.database", "notes.db", "Where the notes are kept");
//     ... open(*database) ...        // after run() has started
//
// SIGTERM and SIGINT shut the program down gracefully; a second one ends it at once. SIGHUP rereads the
// certificates and log.level, and reopens the log file. SIGQUIT dumps all goroutines to standard error. Under
// systemd the program reports when it is ready, and accepts sockets that systemd has opened.
//
// Exit status: 0 if everything was finished; 1 if the program could not start, or if something had to be cut off
// at shutdown; 2 if a setting or the command line is wrong.
//
// Thread-compatible: create and configure the App in main. While it runs, goroutines may call its const members.
#pragma once

#include <tuza/sched/detail/language.h>  // first
#include <tuza/sched/detail/move_only_function.h>

#include <tuza/framework/metrics.h>
#include <tuza/http/router.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <concepts>
#include <cstdint>
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

namespace detail {

// What a Setting shares with its App.
template <class T>
struct SettingState {
  T value;
  std::string place;
  std::vector<MoveOnlyFunction<Result<void>(const T&)>> rules;
};

}  // namespace detail

// A setting that the program itself declares. Its value is available once the function given to App::run is called.
template <class T>
class Setting {
 public:
  [[nodiscard]] const T& operator*() const { return state_->value; }
  [[nodiscard]] const T* operator->() const { return &state_->value; }

  // Adds a rule that each value must obey, the default as well: rule(value) returns nothing or a Result<void>. An error
  // or an exception of it is reported with place(), by --check-config and at the start, and the exit status is 2:
  //
  //     app.setting("files.folder", ".", "The folder that is served")
  //         .check([](const std::string& folder) { tuza::http::FileServer server(folder); });
  //
  // Rules are called on a goroutine, once all settings have their values, and before the function given to run(). They
  // may park, and should leave nothing behind: --check-config only asks. Call before run(). Returns this setting.
  template <std::invocable<const T&> F>
  Setting check(F rule) const {  // NOLINT(modernize-use-nodiscard)
    using Returned = std::invoke_result_t<F&, const T&>;
    static_assert(std::is_void_v<Returned> || std::is_same_v<Returned, Result<void>>,
                  "a rule for a setting returns nothing or a Result<void>");
    state_->rules.emplace_back([rule = std::move(rule)](const T& value) mutable -> Result<void> {
      if constexpr (std::is_void_v<Returned>) {
        rule(value);
        return {};
      } else {
        return rule(value);
      }
    });
    return *this;
  }

  // Where the value comes from, for the program's own messages: "notes.toml:3:notes.database", "TUZA_NOTES_DATABASE",
  // "--set notes.database", "notes.database (default)". Empty before the function given to run() is called.
  [[nodiscard]] const std::string& place() const { return state_->place; }

 private:
  friend class App;
  explicit Setting(T by_default)
      : state_(std::make_shared<detail::SettingState<T>>(
            detail::SettingState<T>{.value = std::move(by_default), .place = {}, .rules = {}})) {}
  std::shared_ptr<detail::SettingState<T>> state_;
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
  // `name` is used in messages; `version` is what --version prints beside Tuza's, and may be empty.
  explicit App(std::string name, std::string version = {});
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  // -- Before run(). A name is section.key, made of lower-case letters, digits and underscores; `doc` is one line.
  // In the environment "notes.database" is TUZA_NOTES_DATABASE. Throws std::invalid_argument if the name is
  // malformed or already taken, or if the default is out of range.

  template <std::same_as<bool> T>
  Setting<bool> setting(std::string_view name, T by_default, std::string_view doc) {
    return add(name, bool{by_default}, doc);
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Setting<std::int64_t> setting(std::string_view name, T by_default, std::string_view doc,
                                Range<std::int64_t> range = {0, std::numeric_limits<std::int64_t>::max()},
                                std::string_view unit = "") {
    return add(name, static_cast<std::int64_t>(by_default), doc, range, unit);
  }
  Setting<std::chrono::milliseconds> setting(std::string_view name, std::chrono::milliseconds by_default,
                                             std::string_view doc,
                                             Range<std::chrono::milliseconds> range = {
                                                 std::chrono::milliseconds(0), std::chrono::hours(24)}) {
    return add(name, by_default, doc, range);
  }
  Setting<Bytes> setting(std::string_view name, Bytes by_default, std::string_view doc,
                         Range<Bytes> range = {{0}, {std::int64_t{1} << 50}}) {
    return add(name, by_default, doc, range);
  }
  Setting<std::string> setting(std::string_view name, std::string by_default, std::string_view doc) {
    return add(name, std::move(by_default), doc);
  }
  Setting<std::vector<std::string>> setting(std::string_view name, std::vector<std::string> by_default,
                                            std::string_view doc) {
    return add(name, std::move(by_default), doc);
  }

  // Changes the default of one of Tuza's settings, given as text: set_default("shutdown.timeout", "1s"). Throws
  // std::invalid_argument if there is no such setting, or the text is not a valid value for it.
  void set_default(std::string_view name, std::string_view value);

  // -- In the function given to run().

  // The routes of the service. Requests are served once the function given to run() has returned.
  [[nodiscard]] http::Router& router();
  // Middleware around all routes, within the access log and the metrics: app.router().use().
  void use(http::Middleware middleware) { router().use(std::move(middleware)); }
  // The routes of the admin address, those of framework/admin.h among them, for more of them:
  // app.admin().handle("GET /my", ...). Served if admin.listen is set. Few connections are allowed, and there is no
  // authentication. handle() throws std::invalid_argument for a pattern that Tuza has.
  [[nodiscard]] http::Router& admin();

  // -- Before run(), in the function given to it, and while the service runs.

  // The service's metrics: app.metrics().counter("orders_total", "Orders accepted"). They are counted in any case, and
  // shown at /metrics if admin.listen is set.
  [[nodiscard]] Metrics& metrics();

  // -- While the service runs.

  // Whether shutdown has begun; if so, /readyz answers 503.
  [[nodiscard]] bool draining() const;

  // Reads the settings, serves until shutdown, and returns the exit status. `set_up` is called on the first
  // goroutine, before anything listens. It returns nothing or a Result<void>; an error or an exception is printed
  // on one line, and the exit status is 1. Objects that handlers use must outlive run(): keep them in main. Call
  // run() once, from main, while there are no other threads. Blocks.
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
  using SetUp = MoveOnlyFunction<Result<void>()>;

  Setting<bool> add(std::string_view name, bool by_default, std::string_view doc);
  Setting<std::int64_t> add(std::string_view name, std::int64_t by_default, std::string_view doc,
                            Range<std::int64_t> range, std::string_view unit);
  Setting<std::chrono::milliseconds> add(std::string_view name, std::chrono::milliseconds by_default,
                                         std::string_view doc, Range<std::chrono::milliseconds> range);
  Setting<Bytes> add(std::string_view name, Bytes by_default, std::string_view doc, Range<Bytes> range);
  Setting<std::string> add(std::string_view name, std::string by_default, std::string_view doc);
  Setting<std::vector<std::string>> add(std::string_view name, std::vector<std::string> by_default,
                                        std::string_view doc);
  template <class T>
  Setting<T> declare(config::Key key, T by_default, T (*read)(const config::Config&, std::string_view));
  int run_with(int argc, char** argv, SetUp set_up);

  std::unique_ptr<State> state_;
};

}  // namespace tuza
