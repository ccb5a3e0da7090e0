#!/usr/bin/env python3
"""crud_test.py PROGRAM: tasks are created, changed and removed, each by its user; sessions cannot be forged."""

import json
import sys
import unittest

from serving import Server

KEY = "k" * 32


class Crud(unittest.TestCase):
    def start(self, *settings) -> Server:
        server = Server(sys.argv[1], *settings)
        self.addCleanup(server.kill)
        return server

    def sign_in(self, server, user) -> str:
        status, headers, _ = server.ask("POST", "/api/session", {"user": user})
        self.assertEqual(status, 204)
        self.assertRegex(headers["Set-Cookie"], r"^session=\S+; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$")
        return headers["Set-Cookie"].split(";")[0]

    def ask(self, server, cookie, method, path, body=None, **headers):
        status, fields, answer = server.ask(method, path, body, Cookie=cookie, **headers)
        return status, fields, json.loads(answer) if answer else None

    def test_tasks_come_and_go(self):
        server = self.start()
        ada = self.sign_in(server, "ada \u2603")
        self.assertEqual(self.ask(server, ada, "GET", "/api/tasks")[2], [])
        status, headers, task = self.ask(server, ada, "POST", "/api/tasks", {"title": "K\u00e4se <b>"})
        self.assertEqual((status, task["title"], task["done"]), (201, "K\u00e4se <b>", False))
        path = headers["Location"]
        self.assertEqual(self.ask(server, ada, "GET", path)[2], task)
        status, _, changed = self.ask(server, ada, "PUT", path, {"title": "Brot", "done": True})
        self.assertEqual((status, changed), (200, {"id": task["id"], "title": "Brot", "done": True}))
        self.assertEqual(self.ask(server, ada, "GET", "/api/tasks")[2], [changed])
        # Another user does not see them, and cannot change them.
        eve = self.sign_in(server, "eve")
        self.assertEqual(self.ask(server, eve, "GET", "/api/tasks")[2], [])
        for method, body in (("GET", None), ("PUT", {"title": "x"}), ("DELETE", None)):
            self.assertEqual(self.ask(server, eve, method, path, body)[::2], (404, {"error": "no such task"}))
        self.assertEqual(self.ask(server, ada, "DELETE", path)[0], 204)
        self.assertEqual(self.ask(server, ada, "DELETE", path)[0], 404)

    def test_bad_input_is_refused_with_a_reason(self):
        server = self.start()
        ada = self.sign_in(server, "ada")
        for body, status, reason in ((b"{", 400, "malformed JSON at byte 2"), (b"[]", 400, "type"), (b'{"title": ""}', 400, "title"),
                                     (b'{"title": "%s"}' % (b"x" * 201), 400, "200"), (b"[" * 10_000, 400, "nested"),
                                     (b" " * 20_000, 413, "")):
            got, _, answer = self.ask(server, ada, "POST", "/api/tasks", body, Content_Type="application/json")
            self.assertEqual(got, status, body[:20])
            self.assertIn(reason, answer["error"])
        self.assertEqual(self.ask(server, ada, "POST", "/api/tasks", b"title=a", Content_Type="text/plain")[0], 415)
        self.assertEqual(self.ask(server, ada, "GET", "/api/tasks/x")[0], 404)
        self.assertEqual(self.ask(server, "", "POST", "/api/session", {"user": ""})[0], 400)
        self.assertEqual(self.ask(server, ada, "GET", "/api/x")[::2], (404, {"error": "no such path"}))
        status, headers, answer = self.ask(server, ada, "PATCH", "/api/tasks")
        self.assertEqual((status, headers["Allow"], answer),
                         (405, "GET, HEAD, POST, OPTIONS", {"error": "no such method"}))

    def test_sessions_cannot_be_forged_and_outlive_the_process(self):
        server = self.start(f"crud.key={KEY}")
        ada = self.sign_in(server, "ada")
        self.ask(server, ada, "POST", "/api/tasks", {"title": "a"})
        value, end, signature = ada.removeprefix("session=").split(".")
        for forged in ("", "session=", "session=ada", f"session={value}.{int(end) + 1}.{signature}",
                       f"session=ZXZl.{end}.{signature}", ada[:-1], ada + "A"):
            status, _, answer = self.ask(server, forged, "GET", "/api/tasks")
            self.assertEqual((status, answer), (401, {"error": "sign in first"}), forged)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(self.ask(self.start(f"crud.key={KEY}"), ada, "GET", "/api/tasks")[0], 200)
        self.assertEqual(self.ask(self.start("crud.key=" + "o" * 32), ada, "GET", "/api/tasks")[0], 401)
        self.assertIn("Max-Age=0", server_of := self.start().ask("DELETE", "/api/session")[1]["Set-Cookie"], server_of)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
