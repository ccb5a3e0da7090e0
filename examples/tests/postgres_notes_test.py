#!/usr/bin/env python3
"""postgres_notes_test.py PROGRAM, run by with_postgres.py: notes come and go; a slow and a lost database are reported."""

import json
import os
import subprocess
import sys
import threading
import time
import unittest

from serving import Server

DATABASE = os.environ["TUZA_POSTGRES"]


def sql(statement):
    done = subprocess.run(["psql", "-qAt", DATABASE, "-c", statement], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def until(expected, ask):
    end = time.monotonic() + 120
    while (found := ask()) != expected:
        assert time.monotonic() < end, f"expected {expected}, it stays at {found}"
        time.sleep(0.05)


class PostgresNotes(unittest.TestCase):
    def start(self, *settings, timeout="60s") -> Server:
        server = Server(sys.argv[1], f"notes.database={DATABASE}", f"notes.timeout={timeout}", *settings)
        self.addCleanup(server.kill)
        return server

    def ask(self, server, *arguments, **headers):
        status, fields, body = server.ask(*arguments, **headers)
        return status, fields, json.loads(body) if body else None

    def test_notes_come_and_go(self):
        server = self.start()
        status, headers, note = self.ask(server, "POST", "/notes", {"title": "Käse", "body": "it's \U0001f9c0"})
        self.assertEqual((status, note["title"], note["body"]), (201, "Käse", "it's \U0001f9c0"))
        self.assertRegex(note["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        path = headers["Location"]
        self.assertEqual(self.ask(server, "GET", path)[2], note)
        self.assertEqual(sql(f"SELECT title FROM notes WHERE id = {note['id']}"), "Käse")
        self.assertEqual(self.ask(server, "DELETE", path)[0], 204)
        for method in "GET", "DELETE":
            self.assertEqual(self.ask(server, method, path)[0], 404)
        self.assertEqual(self.ask(server, "GET", "/notes/x")[0], 404)

    def test_pages_and_bad_input(self):
        server = self.start()
        first = self.ask(server, "POST", "/notes", {"title": "0"})[2]["id"]
        ids = [first] + [self.ask(server, "POST", "/notes", {"title": str(i)})[2]["id"] for i in range(1, 25)]
        seen, after = [], first - 1
        while after is not None:
            page = self.ask(server, "GET", f"/notes?after={after}")[2]
            seen += [note["id"] for note in page["notes"]]
            after = page["next"]
        self.assertEqual([i for i in seen if i in ids], ids)
        self.assertEqual(self.ask(server, "GET", "/notes?after=x")[0], 400)
        self.assertEqual(self.ask(server, "POST", "/notes", b"{}")[0], 400)
        self.assertEqual(self.ask(server, "POST", "/notes", {"title": "a", "body": "\u0000"})[0], 400)

    def test_many_at_once_with_few_connections(self):
        server, statuses = self.start("notes.connections=2"), []
        threads = [threading.Thread(
            target=lambda i=i: statuses.append(self.ask(server, "POST", "/notes", {"title": f"many {i}"})[0]))
            for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(statuses, [201] * 40)
        self.assertEqual(sql("SELECT count(*) FROM notes WHERE title LIKE 'many %'"), "40")

    def test_a_database_that_waits_is_503_and_its_query_ends(self):
        server = self.start(timeout="3s")
        locker = subprocess.Popen(["psql", "-qAt", DATABASE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        locker.stdin.write("BEGIN; LOCK TABLE notes; SELECT 'locked';\n")
        locker.stdin.flush()
        self.assertEqual(locker.stdout.readline(), "locked\n")
        status, headers, answer = self.ask(server, "GET", "/notes")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"), answer)
        # The server ends the query soon after it was told to; the lock stays until then.
        until("0", lambda: sql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
                               " AND query LIKE '%FROM notes%' AND pid <> pg_backend_pid()"))
        locker.communicate("ROLLBACK;\n")
        until(200, lambda: self.ask(server, "GET", "/notes")[0])

    def test_lost_connections_are_replaced(self):
        server = self.start("notes.connections=1")
        self.assertEqual(self.ask(server, "GET", "/notes")[0], 200)
        sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE query LIKE '%FROM notes%'"
            " AND pid <> pg_backend_pid()")
        self.assertEqual(self.ask(server, "GET", "/notes")[0], 200, "it was idle when it was lost")
        self.assertEqual(self.ask(server, "GET", "/notes")[0], 200)

    def test_without_a_database_it_does_not_start(self):
        done = subprocess.run([sys.argv[1], "--listen", "127.0.0.1:0", "--set", "notes.database=host=/nowhere"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
