"""Headless Chromium, driven by its DevTools protocol over a pipe: no port, no driver, no other package."""

import fcntl
import itertools
import json
import os
import select
import shutil

from harness import PATIENCE, eventually

CHROMIUM = shutil.which('chromium')


class Browser:
    """One page. `start` is harness.Case.start; `folder`: for its profile."""

    def __init__(self, start, folder, *flags):
        read, self.commands = os.pipe()
        self.events, write = os.pipe()
        # It reads commands from descriptor 3 and answers on 4; from here they come with larger numbers.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (read, write)]
        script = 'exec "$@" 3<&{0} 4>&{1} {0}<&- {1}>&-'.format(*theirs)
        with open(folder + '/chromium.log', 'wb') as log:
            start(['bash', '-c', script, 'chromium', CHROMIUM, '--headless', '--remote-debugging-pipe', '--no-sandbox',
                   '--disable-gpu', f'--user-data-dir={folder}/profile', *flags], pass_fds=theirs, stdout=log, stderr=log)
        for fd in (read, write, *theirs):
            os.close(fd)
        self.numbers, self.buffer, self.session = itertools.count(1), b'', None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']

    def close(self):
        os.close(self.commands)
        os.close(self.events)

    def call(self, method, **params):
        number = next(self.numbers)
        message = {'id': number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.commands, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.next_message()
            if answer.get('id') == number:
                assert 'error' not in answer, answer
                return answer['result']

    def next_message(self):
        while b'\0' not in self.buffer:
            assert select.select([self.events], [], [], PATIENCE)[0], 'Chromium says nothing'
            block = os.read(self.events, 1 << 16)
            assert block, 'Chromium has ended'
            self.buffer += block
        message, _, self.buffer = self.buffer.partition(b'\0')
        return json.loads(message)

    def open(self, url):
        self.call('Page.navigate', url=url)
        eventually(lambda: self.value('document.readyState') == 'complete' and self.value('location.href') == url, url + ' is loaded')

    def value(self, expression):
        """What a JavaScript expression gives in the page."""
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in result, result
        return result['result'].get('value')

    def type(self, text):
        """As a keyboard would."""
        for letter in text:
            key = {'key': 'Enter', 'code': 'Enter', 'windowsVirtualKeyCode': 13, 'text': '\r'} if letter == '\n' else {'key': letter, 'text': letter}
            self.call('Input.dispatchKeyEvent', type='keyDown', **key)
            self.call('Input.dispatchKeyEvent', type='keyUp', **{name: key[name] for name in key if name != 'text'})

    def resize(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
