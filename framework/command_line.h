// Public header.
//
// The command line of a small server: --listen HOST:PORT, --help and --version.
//
//     const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
//
// An unknown option or a malformed address ends the program with status 2 and a line that names it; --help and --version
// end it with status 0.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <string>
#include <string_view>

namespace tuza {

struct CommandLine {
  std::string listen;  // HOST:PORT
};

// Returns, or ends the process. Call before tuza::run.
CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen);

}  // namespace tuza
