#include <tuza/framework/app.h>

#include <signal.h>
#include <tuza/framework/admin.h>
#include <tuza/framework/app/arguments.h>
#include <tuza/framework/app/options.h>
#include <tuza/framework/app/service.h>
#include <tuza/framework/app/tls_settings.h>
#include <tuza/framework/config/config.h>
#include <tuza/framework/log.h>
#include <tuza/framework/log/output.h>
#include <tuza/sched/detail/exception_text.h>
#include <tuza/sched/detail/keep_for_ever.h>
#include <tuza/sched/rt/base/process.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/lifecycle/environment.h>
#include <tuza/sched/run.h>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

// Not every system declares it.
extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace tuza {

struct App::State {
  // A Setting of the program.
  struct OwnSetting {
    std::function<void(const config::Config&)> take;  // its value and place
    std::function<bool()> has_rules;
    std::function<void(config::Problems&)> check;
  };

  State(std::string called, std::string numbered)
      : name(std::move(called)),
        version(std::move(numbered)),
        schema(std::make_shared<config::Schema>(config::builtin_schema())),
        admin(make_admin_router(
            {.ready = [this] { return !draining(); }, .metrics = metrics, .service = name})) {
    metrics->set_log_lines_dropped(&log_lines_dropped);
  }

  [[nodiscard]] bool has_rules() const {
    return std::ranges::any_of(settings, [](const OwnSetting& setting) { return setting.has_rules(); });
  }
  // Needs a runtime, because files of certificates are loaded and rules called on a goroutine.
  void check_on_goroutine(const config::Config& config, bool with_tls, config::Problems& problems) const {
    tuza::run({.max_procs = 1}, [&] {
      if (with_tls) check_tls(config, problems);
      for (const OwnSetting& setting : settings) setting.check(problems);
    });
  }
  [[nodiscard]] bool draining() const { return service != nullptr && service->draining(); }

  const std::string name;
  const std::string version;                     // may be empty
  const std::shared_ptr<config::Schema> schema;  // shared with the service
  std::vector<OwnSetting> settings;
  const std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  http::Router router;
  http::Router admin;
  Service* service = nullptr;  // set by run(); outlives this object
};

namespace {

// Writes all of `text` to a descriptor whose reader may have stalled. False: not all of it was written.
bool print(int fd, const std::string& text) {
  int tries = 20;
  return logging::write_patiently(fd, text, tries);
}

int refuse(const config::Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text.append(problem).append("\n");
  print(2, text);
  return 2;
}

// Handles --print-config and --check-config; returns the exit status.
int answer(const AppArguments& arguments, const config::Config& config) {
  bool written = !arguments.print_config || print(1, config.to_toml());
  if (arguments.check_config) written = print(arguments.print_config ? 2 : 1, "ok\n") && written;
  if (!written) print(2, "cannot write to standard output\n");
  return written ? 0 : 1;
}

std::vector<std::string> environment_lines() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

config::Key key_of(std::string_view name, config::Type type, config::Value by_default, std::string_view doc) {
  return {
      .name = std::string(name), .type = type, .by_default = std::move(by_default), .doc = std::string(doc)};
}

// The message for the exception that has escaped from a function of the program. Called in a catch block.
std::string text_of_exception() {
  try {
    throw;
  } catch (const std::system_error& e) {
    std::string text = e.what();
    if (e.code() != std::errc::resource_unavailable_try_again) return text;
    // std::thread does not say that it was a thread that the system has refused, nor why.
    return text + " (" + rt::thread_refused("a thread", e.code().value()).message() + ")";
  } catch (const std::exception& e) {
    return detail::exception_text(e);
  } catch (...) {
    return "an exception not derived from std::exception";
  }
}

template <class T>
void check_rules(detail::SettingState<T>& setting, config::Problems& problems) {
  for (auto& rule : setting.rules) {
    try {
      const Result<void> obeyed = rule(setting.value);
      if (!obeyed) problems.push_back(setting.place + ": " + obeyed.error().message());
    } catch (...) {
      problems.push_back(setting.place + ": " + text_of_exception());
    }
  }
}

}  // namespace

App::App(std::string name, std::string version)
    : state_(std::make_unique<State>(std::move(name), std::move(version))) {}
App::~App() = default;

http::Router& App::router() { return state_->router; }
http::Router& App::admin() { return state_->admin; }
Metrics& App::metrics() { return *state_->metrics; }
bool App::draining() const { return state_->draining(); }
void App::set_default(std::string_view name, std::string_view value) {
  state_->schema->set_default(name, value);
}

// Adds the key to the schema, and registers the function that copies its value to the Setting.
template <class T>
Setting<T> App::declare(config::Key key, T by_default, T (*read)(const config::Config&, std::string_view)) {
  Setting<T> setting(std::move(by_default));
  state_->settings.push_back(
      {.take =
           [to = setting.state_, name = key.name, read](const config::Config& config) {
             to->value = read(config, name);
             to->place = config.place(name);
           },
       .has_rules = [of = setting.state_] { return !of->rules.empty(); },
       .check = [of = setting.state_](config::Problems& problems) { check_rules(*of, problems); }});
  state_->schema->add(std::move(key));
  return setting;
}

Setting<bool> App::add(std::string_view name, bool by_default, std::string_view doc) {
  config::Key key = key_of(name, config::Type::kBool, by_default, doc);
  return declare<bool>(std::move(key), by_default,
                       [](const config::Config& config, std::string_view of) { return config.boolean(of); });
}

Setting<std::int64_t> App::add(std::string_view name, std::int64_t by_default, std::string_view doc,
                               Range<std::int64_t> range, std::string_view unit) {
  config::Key key = key_of(name, config::Type::kInt, by_default, doc);
  key.min = range.min;
  key.max = range.max;
  key.unit = std::string(unit);
  return declare<std::int64_t>(
      std::move(key), by_default,
      [](const config::Config& config, std::string_view of) { return config.number(of); });
}

Setting<std::chrono::milliseconds> App::add(std::string_view name, std::chrono::milliseconds by_default,
                                            std::string_view doc, Range<std::chrono::milliseconds> range) {
  config::Key key = key_of(name, config::Type::kDuration, std::int64_t{by_default.count()}, doc);
  key.min = range.min.count();
  key.max = range.max.count();
  return declare<std::chrono::milliseconds>(std::move(key), by_default,
                                            [](const config::Config& config, std::string_view of) {
                                              return std::chrono::milliseconds(config.number(of));
                                            });
}

Setting<Bytes> App::add(std::string_view name, Bytes by_default, std::string_view doc, Range<Bytes> range) {
  config::Key key = key_of(name, config::Type::kSize, by_default.count, doc);
  key.min = range.min.count;
  key.max = range.max.count;
  return declare<Bytes>(std::move(key), by_default, [](const config::Config& config, std::string_view of) {
    return Bytes{config.number(of)};
  });
}

Setting<std::string> App::add(std::string_view name, std::string by_default, std::string_view doc) {
  config::Key key = key_of(name, config::Type::kString, by_default, doc);
  return declare<std::string>(
      std::move(key), std::move(by_default),
      [](const config::Config& config, std::string_view of) { return config.text(of); });
}

Setting<std::vector<std::string>> App::add(std::string_view name, std::vector<std::string> by_default,
                                           std::string_view doc) {
  config::Key key = key_of(name, config::Type::kList, by_default, doc);
  return declare<std::vector<std::string>>(
      std::move(key), std::move(by_default),
      [](const config::Config& config, std::string_view of) { return config.list(of); });
}

int App::run_with(int argc, char** argv, SetUp set_up) {
  // If descriptor 2 were closed, the log file would get its number, and everything that writes to standard error
  // would write into the log file.
  rt::open_standard_descriptors();
  // SIGHUP and SIGQUIT must not end the process before the service watches them: their sender wants a reload or a
  // dump.
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGQUIT, SIG_IGN);
  AppArguments arguments = parse_app_arguments(argc, argv, state_->name, state_->version, *state_->schema);
  arguments.sources.environment = environment_lines();
  config::Problems problems = rt::environment_problems();
  auto config = config::load(*state_->schema, arguments.sources);
  if (!config) problems.insert(problems.end(), config.error().begin(), config.error().end());
  if (!problems.empty()) return refuse(problems);
  for (const State::OwnSetting& setting : state_->settings) setting.take(*config);
  const bool starts = !arguments.check_config && !arguments.print_config;
  if (arguments.check_config || (starts && state_->has_rules())) {
    state_->check_on_goroutine(*config, arguments.check_config, problems);
  }
  if (arguments.check_config) check_log_file(*config, problems);
  if (!problems.empty()) return refuse(problems);
  if (arguments.check_config || arguments.print_config) return answer(arguments, *config);

  const int max_procs = static_cast<int>(config->number("runtime.maxprocs"));
  const Result<std::unique_ptr<Logging>> logging = Logging::open(log_options(*config));
  if (!logging) {
    print(2, state_->name + ": " + config->place("log.file") + ": " + logging.error().message() + "\n");
    return 1;
  }
  state_->service = &keep_for_ever<Service>(
      state_->name, std::move(*config),
      [schema = state_->schema, sources = std::move(arguments.sources)] {
        return config::load(*schema, sources);
      },
      state_->metrics);
  return tuza::run({.max_procs = max_procs}, [&]() -> int {
    return state_->service->run([&]() -> std::expected<Service::Handlers, std::string> {
      try {
        if (Result<void> done = set_up(); !done) return std::unexpected(done.error().message());
      } catch (...) {
        return std::unexpected("set-up: " + text_of_exception());
      }
      return Service::Handlers{.service = std::move(state_->router), .admin = std::move(state_->admin)};
    });
  });
}

}  // namespace tuza
