"""docs/SECURITY.md: every promise names its test, and every test that it names exists."""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDERS = ('tests/security', 'tests/integration', 'tests/e2e', 'tests/acceptance')


def read(path):
    with open(path) as file:
        return file.read()


def tables(text):
    """Each as (header cells, rows of cells)."""
    found, lines = [], []
    for line in text.splitlines() + ['']:
        if line.startswith('|'):
            lines.append([cell.strip() for cell in line.strip('|').split('|')])
        elif lines:
            found.append((lines[0], lines[2:]))
            lines = []
    return found


def unknown(cell):
    """Names of tests in `cell` that there are not; all of them if it names none."""
    files = re.findall(r'\w+_test\.py', cell)
    rows = re.findall(r'\b[A-Z]\d\d[a-z]?\b', cell)
    words = re.findall(r'`(test_\w+|[A-Z]\w+)`', cell)
    places = {name: path for name in files for folder in FOLDERS if os.path.exists(path := f'{ROOT}/{folder}/{name}')}
    missing = [name for name in files if name not in places]
    catalogue = read(HERE + '/security_test.py') + read(HERE + '/work_test.py')
    missing += [row for row in rows if not re.search(rf'def (row|test)_{row}[(_]', catalogue)]
    texts = ''.join(read(path) for path in places.values())
    missing += [word for word in words if not re.search(rf'(def|class) {word}\b', texts)]
    return missing if files or rows or words else ['no test is named']


class Promises(unittest.TestCase):

    def test_each_names_its_test(self):
        checked = 0
        for header, rows in tables(read(ROOT + '/docs/SECURITY.md')):
            if header[0] != 'promise':
                continue
            for row in rows:
                with self.subTest(promise=row[0]):
                    self.assertEqual(unknown(row[-1]), [])
                    checked += 1
        self.assertGreater(checked, 20, 'control: there are promises')

    def test_control_of_the_search(self):
        self.assertEqual(unknown('V01, credentials_test.py, `Nobody`'), ['Nobody'])
        self.assertEqual(unknown('V99 nowhere_test.py'), ['nowhere_test.py', 'V99'])
        self.assertEqual(unknown('by inspection'), ['no test is named'])


if __name__ == '__main__':
    unittest.main(verbosity=2)
