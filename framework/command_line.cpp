#include <tuza/framework/command_line.h>

#include <tuza/netpoll/endpoint.h>

#include <CLI/CLI.hpp>

#include <cstdlib>

namespace tuza {

CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen) {
  CLI::App app("A server made with Tuza.");
  CommandLine result{.listen = std::string(default_listen)};
  app.add_option("--listen", result.listen, "Address to serve on")
      ->type_name("HOST:PORT")
      ->capture_default_str()
      ->check([](const std::string& text) -> std::string {
        // A name is looked up later; what is not even of the form is said here.
        const bool has_port = text.rfind(':') != std::string::npos && !text.ends_with(':');
        return has_port ? "" : "expected HOST:PORT, for example 127.0.0.1:8080, not '" + text + "'";
      });
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    std::exit(app.exit(help));
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    std::cerr << app.help();
    std::exit(2);
  }
  return result;
}

}  // namespace tuza
