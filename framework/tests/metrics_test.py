#!/usr/bin/env python3
"""metrics_test.py APP_SERVER: the program's own metrics and routes at the admin address of an App."""

import re
import signal
import sys
import unittest

from app_testing import Test, get_over, until


class OwnOfTheProgram(Test):
    def start(self, *settings):
        self.socket = self.folder() / "admin"
        return self.service(f"admin.listen=unix:{self.socket}", *settings)

    def admin(self, path):
        until(self.socket.exists)
        return get_over(self.socket, path)

    def test_metrics(self):
        for settings in ((), ("metrics.enabled=false",)):
            service = self.start(*settings)
            for kind in ("tea", "tea", "cake"):
                self.assertEqual(service.get(f"/order?kind={kind}")[0], 200)
            text = self.admin("/metrics")
            self.assertIn('\ntest_orders_total{kind="tea"} 2\n', text)
            self.assertIn('\ntest_orders_total{kind="cake"} 1\n', text)
            self.assertRegex(text, r'\ntest_order_seconds_bucket\{le="\+Inf"\} 3\n')
            self.assertIn("\nlog_lines_dropped_total 0\n", text)
            counted = re.search(r'http_requests_total\{method="GET",code="2xx"\} (\d+)', text)
            self.assertEqual(counted and counted[1], None if settings else "3")
            service.send(signal.SIGTERM)
            self.assertEqual(service.end(), 0)

    def test_routes_beside_those_of_tuza(self):
        self.start()
        self.assertIn("200 OK", self.admin("/my"))
        self.assertTrue(self.admin("/my").endswith("mine\n"))
        self.assertTrue(self.admin("/readyz").endswith("ready\n"))
        self.assertIn("404 Not Found", self.admin("/other"))

    def test_a_route_that_tuza_has_is_refused_at_the_start(self):
        service = self.service("test.admin_route=GET /metrics")
        service.says("app_server: set-up: ")
        self.assertIn("app_server.cpp:", service.says('conflicts with "GET /metrics"'))
        self.assertEqual(service.end(), 1)

    def test_without_an_admin_address(self):
        service = self.service()
        self.assertEqual(service.get("/order?kind=tea")[0], 200)
        service.send(signal.SIGTERM)
        self.assertEqual(service.end(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
