#!/usr/bin/env python3
"""command_line_test.py PROGRAM...: all servers of examples/ have the same command line."""

import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = [pathlib.Path(program) for program in sys.argv[1:]]


def run(program, *arguments, **options):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)
    return done.returncode, done.stdout, done.stderr


class CommandLine(unittest.TestCase):
    def test_each_server_takes_listen_help_and_version(self):
        self.assertGreater(len(PROGRAMS), 5)
        for program in PROGRAMS:
            with self.subTest(program=program.name):
                status, out, err = run(program, "--help")
                self.assertEqual((status, err), (0, ""))
                self.assertIn(f"Usage: {program.name} [OPTIONS]", out)
                for option in ("--listen HOST:PORT", "--help", "--version"):
                    self.assertIn(option, out)
                status, out, err = run(program, "--version")
                self.assertEqual((status, err), (0, ""))
                self.assertRegex(out, rf"^{program.name} \(Tuza \d+\.\d+\.\d+\)\n$")

    def test_what_is_wrong_is_one_line_with_the_name_of_the_program(self):
        for program in PROGRAMS:
            for argument, said in (("--lisen", "unknown option --lisen; did you mean --listen?"),
                                   ("now", "unexpected argument now")):
                with self.subTest(program=program.name, argument=argument):
                    self.assertEqual(run(program, argument),
                                     (2, "", f"{program.name}: {said}\nTry '{program.name} --help'.\n"))

    def test_an_address_that_cannot_be_used_names_its_option(self):
        with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.TemporaryDirectory() as folder:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for program in PROGRAMS:
                with self.subTest(program=program.name):
                    status, out, err = run(program.resolve(), "--listen", address, cwd=folder)
                    self.assertEqual((status, out), (1, ""))
                    self.assertRegex(err, rf"\w: --listen( \(http\.listen\))?: listen {address}: Address already in use\n$")
            for program in PROGRAMS:
                if program.name in ("chat_tcp", "echo_tcp", "readme", "tcp_proxy"):
                    problem = "parse host:port 127.0.0.1:99999: port out of range: invalid address"
                    self.assertEqual(run(program, "--listen", "127.0.0.1:99999"), (1, "", f"tuza: --listen: {problem}\n"))

    def test_settings_that_keep_a_program_from_its_work_are_refused_by_name(self):
        by_name = {program.name: program for program in PROGRAMS}
        for name, setting, said in (
                ("static_files", "files.folder=/nope", "open /nope: No such file or directory"),
                ("static_files", "files.types=/nope", "FileServer: open /nope: No such file or directory"),
                ("reverse_proxy", "proxy.balance=luck", "turns, requests or client, not luck"),
                ("reverse_proxy", 'proxy.upstreams=["ftp://a"]',
                 "ReverseProxyOptions: upstream ftp://a: parse url ftp://a: neither http:// nor https://: invalid address"),
                ("reverse_proxy", "proxy.upstreams=[]", "ReverseProxyOptions: no upstreams"),
                ("reverse_proxy", "proxy.health=well", "a path begins with /, not well"),
                ("crud", "crud.key=short", "CookieSigner: a key has less than 32 bytes"),
                ("sqlite_notes", "notes.database=/nope/notes.db", "open /nope: No such file or directory"),
                ("upload", "upload.folder=/nope", "open /nope: No such file or directory"),
                ("aggregator", "aggregator.upstreams=nonsense",
                 "parse url nonsense: neither http:// nor https://: invalid address"),
                ("aggregator", "aggregator.upstreams= ", "at least one URL")):
            line = f"--set {setting.partition('=')[0]}: {said}\n"
            for arguments in (["--check-config"], ["--listen", "127.0.0.1:0"]):
                with self.subTest(program=name, setting=setting, arguments=arguments):
                    self.assertEqual(run(by_name[name], "--set", setting, *arguments), (2, "", line))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
