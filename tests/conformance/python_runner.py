"""python_runner.py NAME…: runs unittest names and leaves {test: verdict} in results.json."""
import json
import sys
import unittest


class Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.verdicts = {}

    def startTest(self, test):
        super().startTest(test)
        self.verdicts.setdefault(test.id(), 'ok')

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.verdicts[test.id()] = 'FAILED'

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdicts[test.id()] = 'skipped'

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.verdicts[test.id()] = 'FAILED'

    def addError(self, test, error):
        super().addError(test, error)
        self.verdicts[test.id()] = 'FAILED'


suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
result = unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
with open('results.json', 'w') as file:
    json.dump(result.verdicts, file)
