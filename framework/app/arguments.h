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

// An unknown option prints how to call the program and ends it with status 2; --help ends it with 0.
AppArguments parse_app_arguments(int argc, char** argv, const std::string& name);

}  // namespace tuza
