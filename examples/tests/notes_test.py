#!/usr/bin/env python3
"""notes_test.py PROGRAM: notes are created and deleted; errors of the database are reported, and no note is lost."""

import json
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest

from serving import PATIENCE_S, Server


class Notes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.database = self.folder / "notes.db"

    def start(self, *settings, **popen) -> Server:
        server = Server(sys.argv[1], f"notes.database={self.database}", *settings, **popen)
        self.addCleanup(server.kill)
        return server

    def ask(self, server, *arguments, **headers):
        status, fields, body = server.ask(*arguments, **headers)
        return status, fields, json.loads(body) if body else None

    def test_notes_come_and_go(self):
        server = self.start()
        self.assertTrue(self.database.exists())
        status, headers, note = self.ask(server, "POST", "/notes", {"title": "Käse", "body": "zwei\u0000 \U0001f9c0"})
        self.assertEqual(status, 201)
        self.assertEqual(headers["Location"], f"/notes/{note['id']}")
        self.assertEqual((note["title"], note["body"]), ("Käse", "zwei\u0000 \U0001f9c0"))
        path = headers["Location"]
        self.assertEqual(self.ask(server, "GET", path)[2], note)
        status, _, changed = self.ask(server, "PUT", path, {"title": "Brot"})
        self.assertEqual((status, changed["title"], changed["body"]), (200, "Brot", ""))
        self.assertEqual(changed["created"], note["created"])
        self.assertEqual(self.ask(server, "DELETE", path)[0], 204)
        for method, body in (("GET", None), ("PUT", {"title": "x"}), ("DELETE", None)):
            self.assertEqual(self.ask(server, method, path, body)[0], 404)
        # After a restart all notes are there, and no id is used twice.
        kept = self.ask(server, "POST", "/notes", {"title": "kept"})[2]
        self.assertGreater(kept["id"], note["id"])
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.ask(self.start(), "GET", "/notes")[2], {"notes": [kept], "next": None})

    def test_pages(self):
        server = self.start()
        ids = [self.ask(server, "POST", "/notes", {"title": str(i)})[2]["id"] for i in range(25)]
        seen, after = [], 0
        while after is not None:
            page = self.ask(server, "GET", f"/notes?limit=10&after={after}")[2]
            seen += [note["id"] for note in page["notes"]]
            after = page["next"]
        self.assertEqual(seen, ids)
        self.assertEqual(len(self.ask(server, "GET", "/notes")[2]["notes"]), 20)
        for query in ("limit=0", "limit=101", "limit=x", "limit=", "after=-1", "after=99999999999999999999"):
            status, _, answer = self.ask(server, "GET", f"/notes?{query}")
            self.assertEqual(status, 400)
            self.assertIn(query.split("=")[0], answer["error"])

    def test_bad_input_is_refused_with_a_reason(self):
        server = self.start()
        for body, reason in ((b"", "JSON"), (b"{", "JSON"), (b'{"title": "\xff"}', "JSON"), (b"[]", "object"),
                             (b"{}", "title"), (b'{"title": ""}', "title"), (b'{"title": 1}', "title"),
                             (b'{"title": "a", "body": null}', "body"), (b'{"title": "a", "x\xc3\xa4": 1}', "unknown"),
                             (json.dumps({"title": "x" * 201}).encode(), "200"),
                             (json.dumps({"title": "a", "body": "x" * 50_001}).encode(), "50000"),
                             (b"[" * 100_000, "JSON")):
            status, _, answer = self.ask(server, "POST", "/notes", body, Content_Type="application/json")
            self.assertEqual(status, 400, body[:40])
            self.assertIn(reason, answer["error"])
        for body, error in ((b'{"title": x}', "body is not valid JSON at byte 11"),
                            (b'{"title": "a"', "body is not valid JSON at byte 14"),
                            (b"", "body is not valid JSON at byte 1"),
                            (b'{"title": "a"} b', "body is not valid JSON at byte 16"),
                            (b'{"title": "\xff"}', "body is not valid JSON at byte 12"),
                            (b'{"title": 1e999}', "body has a number that is too large")):
            status, _, answer = self.ask(server, "POST", "/notes", body, Content_Type="application/json")
            self.assertEqual((status, answer), (400, {"error": error}))
        self.assertEqual(self.ask(server, "POST", "/notes", b"title=a", Content_Type="text/plain")[0], 415)
        self.assertEqual(self.ask(server, "POST", "/notes", b"{}")[0], 415)
        self.assertEqual(self.ask(server, "POST", "/notes", b" " * 600_000, Content_Type="application/json")[0], 413)
        self.assertEqual(self.ask(server, "GET", "/notes/1x")[0], 404)
        self.assertEqual(server.ask("PATCH", "/notes/1")[0], 405)
        self.assertEqual(self.ask(server, "GET", "/notes")[2]["notes"], [])

    def test_fifty_write_at_once(self):
        server, failures = self.start("notes.busy_timeout=60s"), []

        def write(writer):
            for i in range(5):
                status, _, note = self.ask(server, "POST", "/notes", {"title": f"{writer}.{i}"})
                if status != 201:
                    failures.append(note)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        with sqlite3.connect(self.database) as rows:
            self.assertEqual(rows.execute("SELECT count(DISTINCT title) FROM notes").fetchone(), (250,))

    def test_a_locked_database_is_503_and_comes_back(self):
        server = self.start("notes.busy_timeout=100ms")
        self.assertEqual(self.ask(server, "POST", "/notes", {"title": "before"})[0], 201)
        other = sqlite3.connect(self.database, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        # More requests at once than there are connections: requests that get no connection have the same answer.
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.ask(server, "POST", "/notes", {"title": "a"})))
                   for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for status, headers, answer in answers:
            self.assertEqual((status, headers["Retry-After"]), (503, "1"), answer)
            self.assertTrue(answer["error"])
        # With a write-ahead log, readers do not wait.
        self.assertEqual(self.ask(server, "GET", "/notes")[0], 200)
        other.execute("ROLLBACK")
        other.close()
        self.assertEqual(self.ask(server, "POST", "/notes", {"title": "after"})[0], 201)
        titles = [note["title"] for note in self.ask(server, "GET", "/notes")[2]["notes"]]
        self.assertEqual(titles, ["before", "after"])

    def test_without_patience_it_serves_all_the_same(self):
        server = self.start("notes.busy_timeout=0ms")
        self.assertEqual(self.ask(server, "POST", "/notes", {"title": "a"})[0], 201)
        self.assertEqual(len(self.ask(server, "GET", "/notes")[2]["notes"]), 1)

    def test_when_files_cannot_grow_it_is_500_and_nothing_is_lost(self):
        # The system refuses to let a file grow beyond the limit, as on a full disk. Python ignores SIGXFSZ, and so do
        # the processes that it starts.
        limit = 300_000
        server = self.start(restore_signals=False,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        stored = []
        for i in range(100):
            status, _, answer = self.ask(server, "POST", "/notes", {"title": str(i), "body": "x" * 10_000})
            if status != 201:
                break
            stored.append(answer)
        self.assertEqual(status, 500, answer)
        self.assertIn("database", answer["error"])
        self.assertGreater(len(stored), 5)
        for note in stored:
            self.assertEqual(self.ask(server, "GET", f"/notes/{note['id']}")[2], note)
        server.kill()
        again = self.start()  # the limit is gone
        for note in stored:
            self.assertEqual(self.ask(again, "GET", f"/notes/{note['id']}")[2], note)
        self.assertEqual(self.ask(again, "POST", "/notes", {"title": "room"})[0], 201)

    def test_a_database_that_cannot_be_opened_is_said_at_once(self):
        text = self.folder / "text"
        text.write_text("no database, but long enough to look like one? " * 100)
        for database, said in (self.folder, "unable to open database file"), (text, "file is not a database"):
            setting = f"notes.database={database}"
            done = subprocess.run([sys.argv[1], "--listen", "127.0.0.1:0", "--set", setting], capture_output=True,
                                  text=True, timeout=PATIENCE_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"set-up: --set notes.database: {database}: {said}", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
