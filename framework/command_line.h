// Public header.
//
// The command line of a small server: --listen HOST:PORT and --help only.
//
//     const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
//
// An unknown option or a malformed address prints the usage and ends the program with status 2; --help ends it with
// status 0.
#pragma once

#include <string>
#include <string_view>

namespace tuza {

struct CommandLine {
  std::string listen;  // HOST:PORT
};

// Returns, or ends the process. Call before tuza::run.
CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen);

}  // namespace tuza
