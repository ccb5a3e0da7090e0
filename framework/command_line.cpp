// The command lines of small servers and of tuza::App; the only file that includes CLI11.
#include <tuza/framework/command_line.h>

#include <tuza/framework/app/arguments.h>
#include <tuza/netpoll/endpoint.h>

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <vector>

namespace tuza {
namespace {

void parse_or_exit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    std::cerr << app.help();
    std::exit(2);
  }
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen) {
  CLI::App app("A server made with Tuza.");
  CommandLine result{.listen = std::string(default_listen)};
  app.add_option("--listen", result.listen, "Address to serve on")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check([](const std::string& text) -> std::string {
        // Names are resolved later; only a malformed address is rejected here.
        const bool has_port = text.rfind(':') != std::string::npos && !text.ends_with(':');
        return has_port ? "" : "expected HOST:PORT, for example 127.0.0.1:8080, not '" + text + "'";
      });
  parse_or_exit(app, argc, argv);
  return result;
}

AppArguments parse_app_arguments(int argc, char** argv, const std::string& name) {
  CLI::App app(
      "A server made with Tuza. Settings come from the file, from TUZA_SECTION_KEY in the environment and "
      "from\n"
      "--set, later sources take precedence; --print-config shows all of them with what they mean.",
      name);
  AppArguments result;
  std::vector<std::string> set;
  app.add_option("--config", result.sources.file, "TOML file with the settings")
      ->type_name("FILE")
      ->check([](const std::string& text) -> std::string { return text.empty() ? "expected a file" : ""; });
  app.add_option("--listen", result.sources.listen, "Address to serve on, as http.listen; may be repeated")
      ->type_name("HOST:PORT|unix:/PATH")
      ->allow_extra_args(false);
  app.add_option("--set", set, "One setting, such as log.level=debug; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) -> std::string {
        return text.find('=') != std::string::npos ? "" : "expected KEY=VALUE, not '" + text + "'";
      });
  app.add_flag("--check-config", result.check_config, "Check the settings and exit");
  app.add_flag("--print-config", result.print_config, "Print the settings as a configuration file and exit");
  parse_or_exit(app, argc, argv);
  for (const std::string& text : set) {
    const std::size_t equals = text.find('=');
    result.sources.set.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace tuza
