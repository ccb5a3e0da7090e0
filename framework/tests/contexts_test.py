#!/usr/bin/env python3
"""contexts_test.py APP_SERVER: what the contexts of requests say of the end of a service."""

import signal
import sys
import unittest

from app_testing import Test


class EndOfTheService(Test):
    def test_a_handler_can_tell_which_signal_it_was(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.service("shutdown.timeout=200ms")
            self.addCleanup(service.ask("/ends").close)
            service.says("waits")
            service.send(number)
            service.says(f"notice: shutdown {number.name}: context cancelled")
            service.says(f"end: shutdown {number.name}: context cancelled")
            self.assertEqual(service.end(), 1)

    def test_a_client_that_has_gone_is_another_end(self):
        service = self.service()
        client = service.ask("/ends")
        service.says("waits")
        client.close()
        service.says("end: peer: use of a closed connection")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
