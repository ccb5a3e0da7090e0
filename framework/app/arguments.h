// The command line of a program made with tuza::App.
#pragma once

#include <tuza/framework/config/config.h>

#include <string>

namespace tuza {

struct AppArguments {
  config::Sources sources;  // without the environment
  bool check_config = false;
  bool print_config = false;
};

// Parses the command line. An unknown option ends the program with status 2 and a line that names it; --help and
// --version end it with status 0. --help lists the settings of `schema` that the program has added. `version` is the
// program's own; it may be empty.
AppArguments parse_app_arguments(int argc, char** argv, const std::string& name, const std::string& version,
                                 const config::Schema& schema);

}  // namespace tuza
