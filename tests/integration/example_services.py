"""The services of examples/services, as shipped, with their folders in a place of the test's own."""

import os
import re

from harness import HERE
from network import ServiceCase

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(HERE)), 'examples/services')


class ExampleCase(ServiceCase):

    def serve_example(self, *names, contexts=None):
        """The daemon with some services of the example. `contexts`: of the configuration, as its text."""
        with open(EXAMPLES + '/airlock.yaml') as file:
            text = file.read()
        text = text.replace('/usr/share/doc/airlock/examples/services', EXAMPLES).replace('/srv/', self.dir + '/')
        parts = re.split(r'\n  (?=\w+:\n)', text[text.index('\nservices:') + len('\nservices:'):])
        chosen = [part for part in parts if part.split(':')[0].strip() in names]
        self.assertEqual(len(chosen), len(names), parts)
        contexts = contexts or f'{{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}'
        self.up(f'contexts: {contexts}\nservices:\n' + ''.join('  ' + part + '\n' for part in chosen))
        for name in names:
            self.await_service(name)
