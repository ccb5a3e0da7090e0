// The command lines of small servers and of tuza::App; the only file that includes CLI11.
#include <tuza/framework/command_line.h>

#include <tuza/framework/app/arguments.h>
#include <tuza/framework/config/suggest.h>
#include <tuza/netpoll/endpoint.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {
namespace {

// "unknown option --lisen; did you mean --listen?"
std::string unknown_argument(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto is_option = [](const std::string& text) { return text.size() > 1 && text.starts_with('-'); };
  const auto option = std::ranges::find_if(arguments, is_option);
  if (option == arguments.end()) return "unexpected argument " + arguments.front();
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* one : app.get_options()) {
    for (const std::string& known_name : one->get_lnames()) known.push_back("--" + known_name);
  }
  const std::string_view meant = config::nearest(name, {known.begin(), known.end()});
  return "unknown option " + name + (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?");
}

// What is wrong, in one line. The library would print its whole help below the message.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  const bool extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  return extra && !unknown.empty() ? unknown_argument(app, unknown) : error.what();
}

void parse_or_exit(CLI::App& app, int argc, char** argv, const std::string& version) {
  app.set_version_flag("--version",
                       app.get_name() + (version.empty() ? "" : " " + version) + " (Tuza " TUZA_VERSION ")",
                       "Print the versions of the program and of Tuza, and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help or --version
    const int status = app.exit(asked);
    if (!std::cout.flush()) {
      std::cerr << "cannot write to standard output\n";
      std::exit(1);
    }
    std::exit(status);
  } catch (const CLI::ParseError& error) {
    std::cerr << app.get_name() << ": " << complaint(app, error) << "\nTry '" << app.get_name()
              << " --help'.\n";
    std::exit(2);
  }
}

void add_address(CLI::App& app, std::string_view name, std::string_view help, std::string& value) {
  app.add_option("--" + std::string(name), value, std::string(help))
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check([](const std::string& text) -> std::string {
        // Names are resolved later; only a malformed address is rejected here.
        const bool has_port = text.rfind(':') != std::string::npos && !text.ends_with(':');
        return has_port ? "" : "expected HOST:PORT, for example 127.0.0.1:8080, not '" + text + "'";
      });
}

std::string file_name_of(const char* path) {
  const std::string_view text = path == nullptr ? "" : path;
  return std::string(text.substr(text.rfind('/') + 1));
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen,
                               std::initializer_list<AddressOption> more) {
  CLI::App app("A server made with Tuza.", file_name_of(argv[0]));
  CommandLine result{.listen = std::string(default_listen)};
  add_address(app, "listen", "Address to serve on", result.listen);
  for (const AddressOption& option : more) add_address(app, option.name, option.help, option.value);
  parse_or_exit(app, argc, argv, "");
  return result;
}

AppArguments parse_app_arguments(int argc, char** argv, const std::string& name, const std::string& version,
                                 const config::Schema& schema) {
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
  if (const std::string own = config::help_of_own(schema); !own.empty()) {
    app.footer("Settings of " + name + ", for --set, the file and the environment:\n" + own);
  }
  parse_or_exit(app, argc, argv, version);
  for (const std::string& text : set) {
    const std::size_t equals = text.find('=');
    result.sources.set.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

}  // namespace tuza
