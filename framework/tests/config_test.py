#!/usr/bin/env python3
"""config_test.py APP_SERVER CONF: all errors in a configuration are reported, with their places; correct settings are
used; the files in CONF are correct."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

APP_SERVER, CONF = sys.argv[1], pathlib.Path(sys.argv[2])
PATIENCE_S = 60

# (content of the file, expected messages): every line, in order; FILE stands for the name of the file.
WRONG = [
    # Values of another type.
    ('[http]\nlisten = 8080', ['FILE:2:http.listen: expected one or more addresses such as "127.0.0.1:8080"']),
    ('[http]\nlisten = true', ['FILE:2:http.listen: expected one or more addresses']),
    ('[http]\nbody_max = 1024', ['FILE:2:http.body_max: expected a size from 0B to 1024GiB, such as "512B"']),
    ('[http]\nidle_timeout = 75',
     ['FILE:2:http.idle_timeout: expected a duration from 1ms to 1d, such as "250ms", "10s" or "5m", '
      'got the integer 75']),
    ('[http]\nidle_timeout = 7.5', ['expected a duration from 1ms to 1d', 'got the number 7.5']),
    ('[http]\nheaders_max = "100"', ['FILE:2:http.headers_max: expected a number of headers from 1 to 256, '
                                     'got the string "100"']),
    ('[http]\nheaders_max = 10.0', ['got the number 10']),
    ('[http]\nheaders_max = [1]', ['got an array']),
    ('[http]\naccess_log = "true"', ['FILE:2:http.access_log: expected true or false, got the string "true"']),
    ('[http]\naccess_log = 1', ['FILE:2:http.access_log: expected true or false, got the integer 1']),
    ('[http]\nserver_name = 1', ['FILE:2:http.server_name: expected one line of text, got the integer 1']),
    ('[http]\nserver_name = "a\\r\\nX: y"', ['FILE:2:http.server_name: expected one line of text']),
    ('[log]\nlevel = 3', ['FILE:2:log.level: expected one of "trace", "debug"']),
    ('[log]\nfile = 2026-11-22', ['FILE:2:log.file: expected the path of a file, got a date']),
    ('http = 1', ['FILE:1:http: expected a section, [http], got the integer 1']),
    ('[http.listen]\nport = 1', ['FILE:1:http.listen: expected one or more addresses', 'got a table']),
    # Values out of range.
    ('[http]\nheaders_max = 0', ['FILE:2:http.headers_max: expected a number of headers from 1 to 256, '
                                 'got the integer 0']),
    ('[http]\nheaders_max = 257', ['got the integer 257']),
    ('[http]\nheaders_max = -1', ['got the integer -1']),
    ('[http]\nidle_timeout = "0s"', ['FILE:2:http.idle_timeout: expected a duration from 1ms', 'got the string "0s"']),
    ('[http]\nidle_timeout = "25h"', ['got the string "25h"']),
    ('[http]\nrequest_line_max = "2MiB"', ['FILE:2:http.request_line_max: expected a size from 64B to 1MiB']),
    ('[log]\nqueue_lines = 1', ['FILE:2:log.queue_lines: expected a number of lines from 16 to 1000000']),
    ('[runtime]\nmaxprocs = 257', ['FILE:2:runtime.maxprocs: expected a number of processors from 0 to 256']),
    # Units.
    ('[http]\nidle_timeout = "75"', ['FILE:2:http.idle_timeout: expected a duration', 'got the string "75"']),
    ('[http]\nidle_timeout = "75 s"', ['got the string "75 s"']),
    ('[http]\nidle_timeout = "-1s"', ['got the string "-1s"']),
    ('[http]\nidle_timeout = "1.5s"', ['got the string "1.5s"']),
    ('[http]\nidle_timeout = "1min"', ['got the string "1min"']),
    ('[http]\nidle_timeout = ""', ['got the string ""']),
    ('[http]\nidle_timeout = "99999999999999999999s"', ['got the string "99999999999999999999s"']),
    ('[http]\nbody_max = "8MB"', ['FILE:2:http.body_max: expected a size', 'got the string "8MB"']),
    ('[http]\nbody_max = "9223372036854775807GiB"', ['got the string']),
    # Addresses, paths, choices.
    ('[http]\nlisten = "8080"', ['got the string "8080"']),
    ('[http]\nlisten = "127.0.0.1:99999"', ['got the string "127.0.0.1:99999"']),
    ('[http]\nlisten = "256.0.0.1:80"', ['got the string "256.0.0.1:80"']),
    ('[http]\nlisten = "::1:80:"', ['got the string "::1:80:"']),
    ('[http]\nlisten = "unix:app.sock"', ['got the string "unix:app.sock"']),
    ('[http]\nlisten = "unix:/' + 'x' * 120 + '"', ['got the string "unix:/xxx']),
    ('[http]\nlisten = []', ['FILE:2:http.listen: expected one or more addresses', 'got an array']),
    ('[http]\nlisten = [\n  "127.0.0.1:80",\n  7,\n]', ['FILE:4:http.listen: ', 'got the integer 7']),
    ('[admin]\nlisten = "nowhere"', ['FILE:2:admin.listen: expected an address such as']),
    ('[log]\nfile = ""', ['FILE:2:log.file: expected the path of a file, got the string ""']),
    ('[log]\nformat = "xml"', ['FILE:2:log.format: expected one of "console", "json", got the string "xml"']),
    ('[tls]\nmin_version = "1.1"', ['FILE:2:tls.min_version: expected one of "1.2", "1.3", got the string "1.1"']),
    ('[tls]\nclient_auth = "maybe"', ['expected one of "none", "request", "require"']),
    # Unknown names.
    ('[http]\nlistn = "127.0.0.1:80"', ['FILE:2:http.listn: unknown setting; did you mean http.listen?']),
    ('[htpp]\nlisten = "127.0.0.1:80"', ['FILE:1:htpp: unknown setting; did you mean http?']),
    ('[http]\ntimeout = "1s"', ['FILE:2:http.timeout: unknown setting; did you mean shutdown.timeout?']),
    ('listen = "127.0.0.1:80"', ['FILE:1:listen: unknown setting; did you mean http.listen?']),
    ('[http]\n"li.sten" = 1', ['FILE:2:http.li.sten: unknown setting']),
    # One problem is one line, whatever the name contains.
    ('[http]\n"li\\nst\\u007fen" = 1', ['FILE:2:"http.li\\u000ast\\u007fen": unknown setting']),
    ('[quantum]\nflux = 1', ['FILE:1:quantum: unknown setting']),
    # Settings that depend on each other.
    ('[tls]\ncertificate = "a.pem"', ['FILE:2:tls.certificate: expected tls.key beside it, got none']),
    ('[tls]\nkey = "a.pem"', ['FILE:2:tls.key: expected tls.certificate beside it, got none']),
    ('[tls]\nclient_auth = "require"', ['FILE:2:tls.client_auth: expected tls.client_ca beside it, got none']),
    ('[tls]\nclient_auth = "require"\nclient_ca = "ca.pem"',
     ['FILE:2:tls.client_auth: expected tls.certificate beside it, got none']),
    ('[tls]\nclient_ca = "ca.pem"',
     ['FILE:2:tls.client_ca: expected tls.client_auth beside it, "request" or "require", got "none"']),
    ('[tls]\ncertificate = "c.pem"\nkey = "k.pem"\nclient_ca = "ca.pem"', ['FILE:4:tls.client_ca: expected tls.client_auth']),
    ("a = " + "[" * 230 + "]" * 230, ["FILE:1"]),
    ("[log]\n" + "a." * 60_000 + "a = 1", ["FILE:2", "a key with too many parts"]),
    ("a = { " + "b." * 60_000 + "b = 1 }", ["FILE:1", "a key with too many parts"]),
    ("[" + "a . " * 60_000 + "a]", ["FILE:1", "a key with too many parts"]),
    ("a = { b = " * 3000 + "1" + " }" * 3000, ["FILE:1"]),
    ('[http]\nrequest_line_max = "64KiB"',
     ['FILE:2:http.request_line_max: expected at most http.head_max, got "64KiB"']),
    ('[http]\nhead_max = "1KiB"', ['FILE:2:http.head_max: expected at least http.request_line_max, got "1KiB"']),
    ('[http]\nhead_max = "1KiB"\nrequest_line_max = "2KiB"',
     ['FILE:3:http.request_line_max: expected at most http.head_max, got "2KiB"']),
    ('[http]\nlisten = ["127.0.0.1:8081", "127.0.0.1:8080"]\n[admin]\nlisten = "127.0.0.1:8080"',
     ['FILE:4:admin.listen: expected another port than that of http.listen, "127.0.0.1:8080", got "127.0.0.1:8080"']),
    ('[http]\nlisten = ":8080"\n[admin]\nlisten = "127.0.0.1:8080"', ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = "localhost:8080"\n[admin]\nlisten = "localhost:8080"',
     ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = "unix:/tmp/a"\n[admin]\nlisten = "unix:/tmp/a"', ['FILE:4:admin.listen: expected another port']),
    # In other spellings.
    ('[http]\nlisten = "localhost:8080"\n[admin]\nlisten = "127.0.0.1:8080"',
     ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = "127.0.0.1:8080"\n[admin]\nlisten = "LocalHost.:8080"',
     ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = ":8080"\n[admin]\nlisten = "localhost:8080"', ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = "[::ffff:127.0.0.1]:8080"\n[admin]\nlisten = "127.0.0.1:8080"',
     ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = "unix:/tmp/a"\n[admin]\nlisten = "unix:/tmp/./x/..//a"',
     ['FILE:4:admin.listen: expected another port']),
    ('[http]\nlisten = ["localhost:8080", "127.0.0.1:8080"]', ['FILE:2:http.listen: expected each address once']),
    # Tables.
    ('[[tls.certificates]]\ncertificate = "a.pem"',
     ['FILE:1:tls.certificates: expected [[tls.certificates]] tables, each with the strings '
      'certificate, key, got one without key']),
    ('[[tls.certificates]]\ncertificate = "a.pem"\nkey = 1',
     ['FILE:3:tls.certificates.key: expected the path of a file, got the integer 1']),
    ('[[tls.certificates]]\ncertificate = "a"\nkey = "b"\nname = "c"', ['FILE:4:tls.certificates.name: unknown setting']),
    ('[tls]\ncertificates = "a.pem"', ['FILE:2:tls.certificates: expected [[tls.certificates]] tables']),
    ('[tls]\ncertificates = [1]', ['got the integer 1']),
    # Text that is not TOML.
    ('[http', ['FILE:1:6: expected TOML, got: ']),
    ('a = i\nb = 2', ["FILE:1:6: expected TOML, got: ", "saw 'i '"]),
    ('[+http', ['FILE:1:2: expected TOML, got: ']),
    ('[http]\nlisten 1', ['FILE:2:', 'expected TOML, got: ']),
    ('[http]\nlisten = "a', ['FILE:2:', 'expected TOML']),
    ('[http]\nbody_max = "1KiB"\nbody_max = "2KiB"', ['FILE:3:', 'expected TOML', 'body_max']),
    ('[http]\nbody_max = 1_', ['FILE:2:', 'expected TOML']),
    ('\xff\xfe', ['expected TOML']),
    # Several errors at once.
    ('[http]\nlisten = 1\nheaders_max = 0\n[log]\nlevel = "loud"\nlvl = "info"\n[lgo]\na = 1',
     ['FILE:2:http.listen: ', 'FILE:3:http.headers_max: ', 'FILE:5:log.level: ', 'FILE:6:log.lvl: ', 'FILE:7:lgo: ']),
]

# (name and value in the environment, expected message)
WRONG_VARIABLES = [
    ("TUZA_HTTP_LISTEN", "8080", 'TUZA_HTTP_LISTEN: expected one or more addresses'),
    ("TUZA_HTTP_IDLE_TIMEOUT", "75", 'TUZA_HTTP_IDLE_TIMEOUT: expected a duration from 1ms to 1d'),
    ("TUZA_HTTP_HEADERS_MAX", "many", 'TUZA_HTTP_HEADERS_MAX: expected a number of headers from 1 to 256, got "many"'),
    ("TUZA_HTTP_HEADERS_MAX", "1e2", 'got "1e2"'),
    ("TUZA_HTTP_ACCESS_LOG", "yes", 'TUZA_HTTP_ACCESS_LOG: expected true or false, got "yes"'),
    ("TUZA_HTTP_LISTN", "x", 'TUZA_HTTP_LISTN: unknown setting; did you mean TUZA_HTTP_LISTEN?'),
    ("TUZA_LOGLEVEL", "info", 'TUZA_LOGLEVEL: unknown setting; did you mean TUZA_LOG_LEVEL?'),
    ("TUZA_TLS_CERTIFICATES", "a", 'TUZA_TLS_CERTIFICATES: expected [[tls.certificates]] tables, each with'),
    ("TUZA_TLS_KEY", "a.pem", 'TUZA_TLS_KEY: expected tls.certificate beside it, got none'),
]


def run(*arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TUZA_")}
    return subprocess.run([APP_SERVER, *arguments], env=environment | variables, capture_output=True, text=True,
                          timeout=PATIENCE_S)


class Config(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "test.toml"

    def test_each_wrong_file_is_refused_with_its_place_and_what_was_expected(self):
        self.assertGreaterEqual(len(WRONG), 40)
        for content, said in WRONG:
            with self.subTest(content=content):
                self.file.write_bytes(content.encode("latin-1"))
                done = run("--config", str(self.file), "--check-config")
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                at = 0
                for text in said:
                    text = text.replace("FILE", str(self.file))
                    self.assertIn(text, done.stderr[at:])
                    at = done.stderr.index(text, at) + len(text)

    def test_a_file_that_is_not_there(self):
        done = run("--config", "/nowhere/a.toml", "--check-config")
        self.assertEqual(done.stderr, "/nowhere/a.toml: expected a file that can be read, got: "
                                      "No such file or directory\n")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(run("--config", str(self.file.parent), "--check-config").returncode, 2)

    def test_each_wrong_variable_is_refused_by_its_name(self):
        for name, value, said in WRONG_VARIABLES:
            with self.subTest(name=name, value=value):
                done = run("--check-config", **{name: value})
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_variables_of_others_are_left_alone(self):
        done = run("--check-config", TUZA_DEBUG="stalls=1000ms", TUZA_MAXPROCS="2", TUZA_SLICE_MS="20",
                   TUZA_SERVICE_HOST="10.0.0.1", TUZA_HTTP_PORT="tcp://10.0.0.1:80",
                   TUZA_HTTP_SERVICE_PORT="80", TUZA_HTTP_PORT_80_TCP_ADDR="10.0.0.1", TUZA_HELLO_WORLD="x")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok\n", ""))

    def test_ports_of_different_sockets_do_not_collide(self):
        for http, admin in [("127.0.0.1:8080", "127.0.0.1:8081"), ("127.0.0.1:8080", "127.0.0.2:8080"),
                            ("127.0.0.1:0", "127.0.0.1:0"), ("localhost:0", "127.0.0.1:0"),
                            ("localhost:8080", "[::1]:8080"), (":8080", "127.0.0.1:8081"),
                            ("unix:/tmp/a", "unix:/tmp/b"), ("127.0.0.1:8080", "")]:
            done = run("--listen", http, "--set", f"admin.listen={admin}", "--check-config")
            self.assertEqual((done.returncode, done.stdout), (0, "ok\n"), done.stderr)

    def test_a_wrong_variable_of_the_runtime_keeps_the_service_from_starting(self):
        for name, value, said in [
            ("TUZA_MAXPROCS", "many", "TUZA_MAXPROCS: expected a number from 1 to 256, not 'many'"),
            ("TUZA_MAXPROCS", "0", "TUZA_MAXPROCS: expected a number from 1 to 256, not '0'"),
            ("TUZA_SLICE_MS", "10ms", "TUZA_SLICE_MS: expected a number from 1 to 10000, not '10ms'"),
            ("TUZA_EARLY_HANDOFF_US", "5", "TUZA_EARLY_HANDOFF_US: expected a number from 100 to 10000000, or 0"),
            ("TUZA_LANE_EXTRA", "-1", "TUZA_LANE_EXTRA: expected a number from 1 to 1000, or 0 for off, not '-1'"),
            ("TUZA_PREEMPT_SIGNAL", "9", "TUZA_PREEMPT_SIGNAL: signal 9 cannot be used"),
            ("TUZA_DEBUG", "stalls=1s", "TUZA_DEBUG: cannot use 'stalls=1s'"),
        ]:
            for arguments in (["--check-config"], ["--listen", "127.0.0.1:0"]):
                with self.subTest(name=name, value=value, arguments=arguments):
                    done = run(*arguments, **{name: value})
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertTrue(done.stderr.startswith(said), done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_an_unknown_option_is_one_line_and_the_way_to_the_help(self):
        for arguments, said in [(["--lisen", "127.0.0.1:1"], "unknown option --lisen; did you mean --listen?"),
                                (["--chek-config"], "unknown option --chek-config; did you mean --check-config?"),
                                (["--quantum=7"], "unknown option --quantum"),
                                (["-x"], "unknown option -x"),
                                (["serve"], "unexpected argument serve"),
                                (["--set"], "--set: 1 required KEY=VALUE missing")]:
            with self.subTest(arguments=arguments):
                done = run(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"app_server: {said}\nTry 'app_server --help'.\n")

    def test_the_help_explains_the_programs_own_settings(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn('  test.count\n      A number\n      number of things, 1 to 10; default 3\n', done.stdout)
        self.assertIn('  test.start_delay\n      How long the start takes\n      duration, 0s to 1d; default "0s"\n',
                      done.stdout)
        self.assertNotIn("http.body_max", done.stdout, "--print-config has Tuza's settings")

    def test_the_version_is_that_of_the_program_and_of_tuza(self):
        project = (CONF.parent / "CMakeLists.txt").read_text()
        tuza = re.search(r"project\(tuza VERSION (\S+)", project)[1]
        done = run("--version")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, f"app_server 3.2.1 (Tuza {tuza})\n", ""))

    def test_wrong_command_lines(self):
        for arguments, said in [
            (["--set", "http.headers_max=0"], '--set http.headers_max: expected a number of headers'),
            (["--set", "http.headersmax=1"], "--set http.headersmax: unknown setting; did you mean http.headers_max?"),
            (["--set", "http.headers_max"], "expected KEY=VALUE"),
            (["--set", "=x"], "--set =x: a setting has a name: --set KEY=VALUE"),
            (["--listen", "nowhere"], '--listen: expected one or more addresses'),
            (["--lisen", "127.0.0.1:1"], "--lisen"),
            (["--config", ""], "--config: expected a file"),
            (["--listen", "127.0.0.1:81", "--listen", "127.0.0.1:81"], 'expected each address once, got "127.0.0.1:81" again'),
            (["--set", "log.file=/nowhere/log"], "--set log.file: log file /nowhere/log: No such file or directory"),
            (["--set", "log.file=/"], "--set log.file: log file /: Is a directory"),
            (["--set", "http.trusted_proxies=10.0.0.1/8"], '--set http.trusted_proxies: expected networks such as "10.0.0.0/8"'),
            (["--set", "http.trusted_proxies=localhost"], '--set http.trusted_proxies: expected networks'),
            (["--set", "http.proxy_protocol=required"],
             "--set http.proxy_protocol: expected http.trusted_proxies beside it, got none"),
        ]:
            with self.subTest(arguments=arguments):
                done = run(*arguments, "--check-config")
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)

    def test_options_and_variables_take_toml(self):
        for text, items in [('["a","b"]', ["a", "b"]), ('[ "a, b", \'c\' ]', ["a, b", "c"]), ("[]", []), ('"a, b"', ["a, b"]),
                            ('"a, b","c"', ["a, b", "c"]), ('["\\u00e9"]  # one', ["\u00e9"]),
                            # Plain text, as ever.
                            ("", []), ("a", ["a"]), ("a,b", ["a", "b"]), ("[::1]:80", ["[::1]:80"]),
                            ("[::1]:80,[::2]:81", ["[::1]:80", "[::2]:81"]), ("[::1]", ["[::1]"]), ("a[0],b", ["a[0]", "b"]),
                            ("'a'", ["'a'"]), ("{a}", ["{a}"])]:
            for arguments, variables in ((["--set", f"test.list={text}"], {}), ([], {"TUZA_TEST_LIST": text})):
                done = run("--print-config", *arguments, **variables)
                self.assertEqual((done.returncode, done.stderr), (0, ""), text)
                self.assertEqual(tomllib.loads(done.stdout)["test"]["list"], items, text)
        certificates = '[{ certificate = "a", key = "b" }, { key = "d", certificate = "c" }]'
        for setting, section, value in [
            ('http.listen=["127.0.0.1:1","[::1]:2"]', "http", ["127.0.0.1:1", "[::1]:2"]),
            ('http.listen="127.0.0.1:1","[::1]:2"', "http", ["127.0.0.1:1", "[::1]:2"]),
            ("http.listen=[::1]:2,[::1]:3", "http", ["[::1]:2", "[::1]:3"]),
            ("http.trusted_proxies=10.0.0.0/8, ::1,unix:", "http", ["10.0.0.0/8", "::1", "unix:"]),
            ('http.trusted_proxies=["10.0.0.0/8"]', "http", ["10.0.0.0/8"]),
            ("http.trusted_proxies=", "http", []),
            ('http.idle_timeout="10s"', "http", "10s"),
            ('log.level="debug"', "log", "debug"),
            ('test.text="a\\tb"', "test", "a\tb"),
            ('test.text={"a": [1]}', "test", '{"a": [1]}'),
            ("test.text=[x]", "test", "[x]"),
            (f"tls.certificates={certificates}", "tls",
             [{"certificate": "a", "key": "b"}, {"certificate": "c", "key": "d"}]),
            ('tls.certificates={certificate="a",key="b"}', "tls", [{"certificate": "a", "key": "b"}]),
        ]:
            done = run("--print-config", "--set", setting)
            self.assertEqual((done.returncode, done.stderr), (0, ""), setting)
            self.assertEqual(tomllib.loads(done.stdout)[section][setting.split("=")[0].split(".")[1]], value, setting)

    def test_wrong_toml_is_refused_with_the_option_and_the_text(self):
        for setting, said in [
            ('test.list=["a",', ('--set test.list: expected TOML, got: ', ', in "[\\"a\\","')),
            ('test.list=[a,b]', ('--set test.list: expected TOML, got: ', ', in "[a,b]"')),
            ('test.list=["a",1]',
             ('--set test.list: expected a list of strings, got the integer 1, in "[\\"a\\",1]"',)),
            ('test.list=["a"]\nother = 1', ('--set test.list: expected one value of TOML, got several, in ',)),
            ('test.text="a', ('--set test.text: expected TOML, got: ', ', in "\\"a"')),
            ('test.count="3"', ('--set test.count: expected a number of things from 1 to 10, got the string "3", in ',)),
            ('http.listen=["nowhere"]', ('--set http.listen: expected one or more addresses', 'got the string "nowhere", in ')),
            ('http.listen=[::1]:99999', ('--set http.listen: expected one or more addresses', 'got "[::1]:99999"')),
            ('tls.certificates={certificate="a"}', ('--set tls.certificates: expected [[tls.certificates]] tables', 'without key')),
            ('tls.certificates={certificate="a",key="b",name="c"}', ('--set tls.certificates: tls.certificates.name: unknown',)),
        ]:
            done = run("--check-config", "--set", setting)
            self.assertEqual((done.returncode, done.stdout), (2, ""), setting)
            for text in said:
                self.assertIn(text, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_the_programs_own_rules_are_asked_before_the_start(self):
        self.file.write_text('[test]\ntext = "throw"\nlist = ["a", "b"]\ncount = 1\n')
        said = [f"{self.file}:2:test.text: not this word", f"{self.file}:3:test.list: more than 1 (test.count)"]
        for arguments in (["--check-config"], ["--listen", "127.0.0.1:0"]):
            done = run("--config", str(self.file), *arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.splitlines()), (2, "", said), arguments)
        done = run("--check-config", TUZA_TEST_TEXT="throw")
        self.assertEqual((done.returncode, done.stderr), (2, "TUZA_TEST_TEXT: not this word\n"))
        # --print-config shows what the sources say, whatever they say.
        done = run("--print-config", "--set", "test.text=throw")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_check_of_a_log_file_does_not_make_it(self):
        log = self.file.parent / "log"
        done = run("--set", f"log.file={log}", "--check-config")
        self.assertEqual((done.returncode, done.stdout, log.exists()), (0, "ok\n", False), done.stderr)

    def test_what_cannot_be_printed_is_an_error(self):
        for option in ("--print-config", "--check-config", "--help", "--version"):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([APP_SERVER, option], stdout=full, stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (1, b"cannot write to standard output\n"), option)

    def test_everything_that_is_wrong_is_said_at_once(self):
        self.file.write_text("[http]\nlisten = 1\n")
        done = run("--config", str(self.file), "--set", "log.level=loud", TUZA_LOG_FORMAT="xml")
        self.assertEqual(done.returncode, 2, "without --check-config, too")
        lines = done.stderr.splitlines()
        self.assertEqual([line.split(": ")[0] for line in lines],
                         [f"{self.file}:2:http.listen", "TUZA_LOG_FORMAT", "--set log.level"])

    def test_later_sources_win(self):
        self.file.write_text('[http]\nserver_name = "file"\nheaders_max = 7\nbody_max = "1KiB"\n')
        printed = run("--config", str(self.file), "--set", "http.body_max=3KiB", "--listen", "127.0.0.1:1",
                      "--listen", "unix:/tmp/a", "--print-config",
                      TUZA_HTTP_HEADERS_MAX="8", TUZA_HTTP_BODY_MAX="2KiB", TUZA_HTTP_LISTEN="127.0.0.1:9")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        http = tomllib.loads(printed.stdout)["http"]
        self.assertEqual((http["server_name"], http["headers_max"], http["body_max"]), ("file", 8, "3KiB"))
        self.assertEqual(http["listen"], ["127.0.0.1:1", "unix:/tmp/a"])
        for origin in (f"from {self.file}:2", "from TUZA_HTTP_HEADERS_MAX", "from --set http.body_max",
                       "from --listen", "from default"):
            self.assertIn(origin, printed.stdout)

    def test_what_is_printed_is_a_file_with_the_same_meaning(self):
        odd = 'a "b" \\ \t # \x1b é'
        first = run("--print-config", "--set", f"test.text={odd}", "--set", "test.list=a, b,c", "--set",
                    "test.size=3KiB", "--set", "test.start_delay=1500ms")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(tomllib.loads(first.stdout)["test"],
                         {"text": odd, "list": ["a", "b", "c"], "size": "3KiB", "start_delay": "1500ms",
                          "fail": False, "count": 3, "admin_route": "GET /my"})
        self.file.write_text(first.stdout)
        again = run("--config", str(self.file), "--print-config")
        self.assertEqual(tomllib.loads(again.stdout), tomllib.loads(first.stdout))

    def test_a_programs_own_settings_are_checked_as_any(self):
        self.file.write_text('[test]\ncount = 11\nsize = 5\nlist = "a"\ntxt = "a"\n')
        done = run("--config", str(self.file), "--check-config")
        for said in ("test.count: expected a number of things from 1 to 10, got the integer 11",
                     "test.size: expected a size from 0B to 1MiB", "test.list: expected a list of strings",
                     "test.txt: unknown setting; did you mean test.text?"):
            self.assertIn(said, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 4)

    def test_the_files_of_conf_are_right_and_production_explains_every_key(self):
        files = sorted(CONF.glob("*.toml"))
        self.assertGreaterEqual(len(files), 2)
        for file in files:
            done = run("--config", str(file), "--check-config")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ok\n", ""))
        production = (CONF / "production.toml").read_text()
        printed = run("--print-config").stdout
        keys_of = tomllib.loads(printed)
        del keys_of["test"]  # the program's own settings
        for section, keys in keys_of.items():
            text = "\n" + production.split(f"[{section}]\n")[1].split("\n[")[0]
            explained = printed.split(f"[{section}]\n")[1].split("\n[")[0]
            for key in keys:
                self.assertRegex(text, rf"(?m)^(# )?{key} = ")
                doc = re.search(rf"(?m)^# (.*)\n# .*\n{key} = ", explained)[1]
                self.assertIn(f" {doc}. ", text.replace("\n# ", " ").replace("\n", " "))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
