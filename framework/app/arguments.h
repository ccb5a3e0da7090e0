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

// Parses the command line. An unknown option prints the usage and ends the program with status 2; --help ends it
// with status 0.
AppArguments parse_app_arguments(int argc, char** argv, const std::string& name);

}  // namespace tuza
