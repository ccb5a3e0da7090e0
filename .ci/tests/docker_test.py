#!/usr/bin/env python3
"""docker_test.py: what .ci/docker.py does before it needs an image: it deletes no tree in which something is mounted,
it shows what failed commands printed, and its images are those that the Dockerfile and the examples have.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("docker", ROOT / ".ci/docker.py")
sys.dont_write_bytecode = True
docker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(docker)

MOUNTINFO = r"""22 1 254:1 / / rw,relatime - ext4 /dev/root rw
30 22 0:5 / /cache/bookworm/proc rw - proc proc rw
31 22 0:6 / /cache/bookworm/sys rw - sysfs sysfs rw
32 31 0:7 / /cache/bookworm/sys/fs/a\040name rw - tmpfs tmpfs rw
33 22 0:5 / /cache/bookworm-other/proc rw - proc proc rw
"""


class Scratch(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)


class Mounts(Scratch):
    def test_inner_mounts_come_before_outer_ones_and_neighbours_are_left_alone(self):
        self.assertEqual(docker.mounts_beneath(pathlib.Path("/cache/bookworm"), MOUNTINFO),
                         ["/cache/bookworm/sys/fs/a name", "/cache/bookworm/sys", "/cache/bookworm/proc"])

    def test_a_tree_with_a_mount_that_stays_is_not_deleted(self):
        tree = self.scratch / "tree"
        (tree / "proc").mkdir(parents=True)
        (tree / "proc" / "1").write_text("the machine's own")
        mounted = f"30 22 0:5 / {tree.resolve()}/proc rw - proc proc rw\n"
        with mock.patch.object(docker.pathlib.Path, "read_text", return_value=mounted), \
                mock.patch.object(docker.subprocess, "run") as run, self.assertRaisesRegex(docker.Failure, "mounted in it"):
            docker.remove_tree(tree)
        self.assertEqual(run.call_args.args[0], ["umount", f"{tree.resolve()}/proc"])
        self.assertTrue((tree / "proc" / "1").exists())

    def test_in_a_plain_chroot_the_root_is_no_mount_point(self):
        self.assertTrue(docker.root_is_mounted(MOUNTINFO))
        self.assertFalse(docker.root_is_mounted(MOUNTINFO.partition("\n")[2]))

    def test_a_tree_without_mounts_is_deleted(self):
        tree = self.scratch / "tree"
        (tree / "etc").mkdir(parents=True)
        docker.remove_tree(tree)
        self.assertFalse(tree.exists())
        docker.remove_tree(tree)  # nothing there is fine


class Messages(Scratch):
    def program(self, name, script):
        path = self.scratch / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def test_a_failure_of_buildah_shows_its_standard_error(self):
        program = self.program("buildah", "echo 'could not find \"netavark\"' >&2; exit 125")
        with mock.patch.object(docker, "BUILDAH", [str(program)]), \
                self.assertRaisesRegex(docker.Failure, r'buildah from failed \(125\):\ncould not find "netavark"'):
            docker.buildah("from", "scratch")

    def test_a_failure_of_debootstrap_shows_the_end_of_its_output_and_of_its_log(self):
        self.program("debootstrap", 'echo "W: no mirror" >&2; mkdir -p "$4/debootstrap"; '
                                    'echo "dpkg: error" >"$4/debootstrap/debootstrap.log"; exit 1')
        path = f"{self.scratch}:{os.environ['PATH']}"
        with mock.patch.dict(os.environ, PATH=path), mock.patch.object(docker, "ROOT", self.scratch), \
                self.assertRaisesRegex(docker.Failure, r"(?s)failed \(1\):.*W: no mirror.*dpkg: error"):
            docker.debootstrap("bookworm", self.scratch / "tree", "http://localhost/debian")


class Images(unittest.TestCase):
    text = (ROOT / "Dockerfile").read_text()

    def test_every_server_among_the_examples_has_an_image(self):
        servers = {path.stem for path in (ROOT / "examples").glob("*.cpp")
                   if re.search(r"tuza::App app|parse_command_line", path.read_text())}
        # The README's program is hello, shorter; postgres_notes does not start without a database.
        self.assertEqual(set(docker.STAGES), servers - {"readme", "postgres_notes"})
        self.assertLessEqual(set(docker.STAGES.values()), set(re.findall(r"^FROM \S+ AS (\w+)$", self.text, re.M)))

    def test_the_label_names_the_version_that_is_built(self):
        version = re.search(r"^project\(tuza VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
        self.assertIn(f"\nARG VERSION={version}\n", self.text)

    def test_the_base_is_a_dated_tag_and_the_default_stage_is_last(self):
        self.assertRegex(docker.base_name(), r"^debian:[a-z]+-\d{8}-slim$")
        self.assertEqual(re.findall(r"^FROM .*$", self.text, re.M)[-1], "FROM program AS app")


if __name__ == "__main__":
    unittest.main()
