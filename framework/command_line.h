// Public header.
//
// The command line of a small server: --listen HOST:PORT, --help and --version.
//
//     const tuza::CommandLine args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080");
//
//     std::string upstream = "127.0.0.1:9000";                                      // and --upstream HOST:PORT
//     const auto args = tuza::parse_command_line(argc, argv, "127.0.0.1:8080", {{"upstream", "Address to ask", upstream}});
//
// An unknown option or a malformed address ends the program with status 2 and a line that names it; --help and --version
// end it with status 0. What cannot be known before, such as an address in use, explain() puts down to the option:
//
//     return args.explain(tuza::net::listen_and_serve(args.listen, handler));
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/errorf.h>
#include <tuza/sched/result.h>

#include <expected>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tuza {

struct CommandLine {
  std::string listen;  // HOST:PORT

  // Returns `result`, that of a server or of net::listen(). An error about the address `listen` begins with the option,
  // as an App's does with its setting: "--listen: listen 127.0.0.1:80: Permission denied".
  template <class T>
  [[nodiscard]] Result<T> explain(Result<T> result) const {
    if (result) return result;
    // The address, or "ADDRESS: what is wrong with it".
    const std::string& subject = result.error().subject();
    if (subject != listen && !subject.starts_with(listen + ": ")) return result;
    return std::unexpected(errorf("--listen: {}", result.error()));
  }
};

// An option of the same kind, --NAME HOST:PORT.
struct AddressOption {
  std::string_view name;  // without the dashes
  std::string_view help;
  std::string& value;  // the default; changed if the option is given
};

// Returns, or ends the process. Call before tuza::run.
CommandLine parse_command_line(int argc, char** argv, std::string_view default_listen,
                               std::initializer_list<AddressOption> more = {});

}  // namespace tuza
