#!/usr/bin/env python3
"""debian_package_test.py BUILD_TREE CXX: the Debian package that CPack makes can be installed, used and removed.

dpkg installs it into a scratch folder, where the packages of this machine count as installed; the machine itself is not
changed. Without root, dpkg runs under fakeroot. A program is linked with what was installed, as find_package and
the line of README.md for pkg-config say.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE, CXX = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"
README = CONSUMER.parents[2] / "README.md"
PACKAGE = "libtuza-dev"
PATIENCE_S = 500


def run(*words, **options):
    done = subprocess.run(list(map(str, words)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PATIENCE_S, check=False, **options)
    return done.returncode, done.stdout


class Machine:
    """A scratch folder that dpkg takes for the root of a machine, with the packages that `status` lists."""

    def __init__(self, folder, status):
        self.folder, self.data = folder, folder / "var/lib/dpkg"
        (self.data / "updates").mkdir(parents=True)
        (self.data / "info").mkdir()
        (self.data / "status").write_text(status)
        (folder / "var/log").mkdir()

    def dpkg(self, *words):
        fake = [] if os.geteuid() == 0 else ["fakeroot"]
        path = {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LC_ALL": "C"}
        return run(*fake, "dpkg", f"--root={self.folder}", f"--log={self.folder}/var/log/dpkg.log", *words,
                   env=os.environ | path)

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                if not path.is_relative_to(self.folder / "var")}


def status_of_this_machine():
    """The installed packages. What they contain is left out: only their names and versions matter here."""
    text = pathlib.Path("/var/lib/dpkg/status").read_text(errors="replace")
    records = [re.sub(r"^Conffiles:\n(?: .*\n)*", "", record + "\n", flags=re.M) for record in text.split("\n\n")]
    return "\n".join(record for record in records if "\nStatus: install ok installed\n" in record)


class DebianPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        status, output = run("cpack", "-G", "DEB", "-B", cls.scratch / "pack", cwd=TREE)
        assert status == 0, output
        [cls.package] = (cls.scratch / "pack").glob("*.deb")

    def field(self, name):
        status, output = run("dpkg-deb", "--field", self.package, name)
        self.assertEqual(status, 0, output)
        return output.strip()

    def test_its_dependencies_are_packages_that_the_build_needs(self):
        depends = self.field("Depends").split(", ")
        self.assertIn("libssl-dev", depends)
        for name in depends:
            self.assertEqual(run("dpkg-query", "--status", name)[0], 0, name)

    def test_it_says_what_it_is(self):
        version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", (TREE / "CMakeCache.txt").read_text(), re.M)[1]
        self.assertEqual(self.field("Version"), f"{version}-1")
        self.assertEqual((self.field("Package"), self.field("Section")), (PACKAGE, "libdevel"))
        self.assertEqual(self.field("Architecture"), run("dpkg", "--print-architecture")[1].strip())
        status, licence = run("sh", "-c", f"dpkg-deb --fsys-tarfile '{self.package}' | "
                                          f"tar -xO ./usr/share/doc/{PACKAGE}/copyright")
        self.assertEqual(status, 0, licence)
        self.assertRegex(licence, r"(?s)^Format: https.*\nLicense: Expat\n Permission is hereby granted")

    def test_it_is_not_installed_without_its_dependencies(self):
        bare = Machine(self.scratch / "bare", "")
        status, output = bare.dpkg("--install", self.package)
        self.assertNotEqual(status, 0)
        self.assertIn("depends on libssl-dev", output)

    def test_it_is_installed_used_and_removed(self):
        machine = Machine(self.scratch / "root", status_of_this_machine())
        before = machine.files()
        status, output = machine.dpkg("--install", self.package)
        self.assertEqual(status, 0, output)
        with self.subTest("find_package"):
            self.link_by_cmake(machine.folder / "usr")
        with self.subTest("pkg-config"):
            self.link_by_pkg_config(machine.folder / "usr")
        status, output = machine.dpkg("--purge", PACKAGE)
        self.assertEqual(status, 0, output)
        self.assertEqual(machine.files(), before)

    def link_by_cmake(self, prefix):
        build = self.scratch / "by-cmake"
        for words in (["cmake", "-G", "Ninja", "-S", CONSUMER, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                       f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=Debug"],
                      ["cmake", "--build", build, "--target", "consumer"], [build / "consumer"]):
            status, output = run(*words)
            self.assertEqual(status, 0, output)
        self.assertIn(f"tuza_DIR:PATH={prefix}/lib/cmake/tuza\n", (build / "CMakeCache.txt").read_text())

    def link_by_pkg_config(self, prefix):
        program = self.scratch / "by-pkg-config"
        environment = os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
        [line] = re.findall(r"Without CMake: `g\+\+ server\.cpp ([^`]*)`", README.read_text())
        status, output = run("sh", "-c", f"'{CXX}' '{CONSUMER}/main.cpp' {line} -o '{program}'", env=environment)
        self.assertEqual(status, 0, output)
        status, output = run(program)
        self.assertEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
