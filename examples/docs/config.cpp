// The code on docs/guide/config.md.
#include <tuza/framework/app.h>
#include <tuza/framework/log.h>
#include <tuza/tuza.h>

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <string_view>

namespace config_page {

struct Database {
  static tuza::Result<Database> open(const std::string&, std::chrono::milliseconds) { return Database(); }
};

struct Collector {
  void send(std::string_view) {}
};

//! [sink]
int main_of_a_service_with_a_collector(int argc, char** argv) {
  static Collector collector;  // until the process ends, as the sink: remove_log_sink() would end it sooner
  tuza::add_log_sink([](std::string_view line) { collector.send(line); });
  tuza::App app("orders");
  return app.run(argc, argv, [] { spdlog::info("ready"); });
}
//! [sink]

int serve(int argc, char** argv) {
  //! [settings]
  using namespace std::chrono_literals;
  tuza::App app("notes");
  const auto database = app.setting("notes.database", "notes.db", "Where the notes are kept");
  database.check([](const std::string& file) -> tuza::Result<void> {
    if (file.ends_with(".db")) return {};
    return std::unexpected(tuza::errorf("expected a file that ends with .db, got {}", file));
  });
  const auto patience = app.setting("notes.patience", 2s, "For a locked database", {100ms, 1min});
  const auto note_max =
      app.setting("notes.size_max", tuza::Bytes{64 << 10}, "Maximum size of a note; larger: 413");
  app.set_default("shutdown.timeout", "5s");
  return app.run(argc, argv, [&]() -> tuza::Result<void> {
    auto opened = Database::open(*database, *patience);  // settings have their values from here on
    if (!opened) return std::unexpected(tuza::errorf("{}: {}", database.place(), opened.error()));
    app.router().handle("PUT /notes/{id}", [limit = note_max->count](auto& req, auto& res) {
      if (req.content_length().value_or(0) > static_cast<std::uint64_t>(limit)) return res.error(413);
      res.no_content();
    });
    return {};
  });
  //! [settings]
}

}  // namespace config_page
