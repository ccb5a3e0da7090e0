#!/usr/bin/env python3
"""aggregator_test.py PROGRAM: all upstreams are asked at once, and those that fail or are late cost only their own part."""

import json
import socket
import sys
import threading
import unittest

from serving import PATIENCE_S, Server


class Upstream:
    """Answers requests with `text` once `may_answer` is set."""

    def __init__(self, text, status="200 OK"):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.head = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode()
        self.text = text.encode()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        conn, _ = self.listener.accept()
        with conn:
            conn.settimeout(PATIENCE_S)
            if not conn.recv(10_000):
                return  # close()
            self.asked.set()
            self.may_answer.wait(PATIENCE_S)
            try:
                conn.sendall(self.head + self.text)
            except OSError:
                pass  # nobody waits for it any more

    def close(self):
        self.may_answer.set()
        if not self.asked.is_set():
            socket.create_connection(self.listener.getsockname()).close()
        self.thread.join()
        self.listener.close()


class Aggregator(unittest.TestCase):
    def upstream(self, text, status="200 OK"):
        upstream = Upstream(text, status)
        self.addCleanup(upstream.close)
        return upstream

    def start(self, *urls, deadline):
        server = Server(sys.argv[1], "aggregator.upstreams=" + " ".join(urls), f"aggregator.deadline={deadline}")
        self.addCleanup(server.kill)
        return server

    def ask(self, server):
        status, _, body = server.ask("GET", "/")
        answer = json.loads(body)
        return status, answer["answers"], answer["errors"]

    def test_all_are_asked_at_once(self):
        three = [self.upstream(name) for name in ("one", "two", "three")]
        server = self.start(*[each.url for each in three], deadline="60000ms")
        answer = []
        caller = threading.Thread(target=lambda: answer.append(self.ask(server)))
        caller.start()
        for each in three:
            self.assertTrue(each.asked.wait(PATIENCE_S))  # before any has answered
        for each in three:
            each.may_answer.set()
        caller.join()
        self.assertEqual(answer, [(200, {each.url: each.text.decode() for each in three}, {})])
        self.assertEqual(server.stop(), 0)

    def test_what_is_late_down_or_wrong_is_an_error_beside_the_answers(self):
        good, late, wrong = self.upstream("good"), self.upstream("late"), self.upstream("", "500 Internal Server Error")
        down = Upstream("")
        down.close()
        good.may_answer.set()
        wrong.may_answer.set()
        server = self.start(good.url, late.url, wrong.url, down.url, deadline="5000ms")
        status, answers, errors = self.ask(server)
        self.assertEqual((status, answers), (200, {good.url: "good"}))
        self.assertEqual(set(errors), {late.url, wrong.url, down.url})
        self.assertIn("deadline exceeded", errors[late.url])
        self.assertIn("status 500", errors[wrong.url])
        self.assertIn("Connection refused", errors[down.url])

    def test_without_any_answer_the_status_is_502(self):
        late = [self.upstream("late") for _ in range(3)]
        server = self.start(*[each.url for each in late], deadline="50ms")
        status, answers, errors = self.ask(server)
        self.assertEqual((status, answers, len(errors)), (502, {}, 3))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
