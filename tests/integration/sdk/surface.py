"""The Python SDK against a real daemon. Started by sdk_test.py, with the SDK installed."""

import http.server
import os
import threading
import unittest

import airlock_sdk as sdk

WORK = os.environ['WORK']


class Surface(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.sandbox = sdk.connect()
        cls.context = cls.sandbox.create_context('python', cwd=WORK, persistent=False)

    @classmethod
    def tearDownClass(cls):
        cls.context.destroy()

    def test_errors_have_classes_and_codes(self):
        with self.assertRaises(sdk.AuthError) as wrong:
            sdk.connect(token='wrong')
        self.assertEqual((wrong.exception.code, wrong.exception.status), ('unauthorized', 401))
        self.assertRaises(sdk.UnreachableError, sdk.connect, 'http://127.0.0.1:9')
        self.assertRaises(sdk.ContextExistsError, self.sandbox.create_context, 'python')
        self.assertEqual(self.sandbox.create_context('python', if_exists='reuse').name, 'python')
        self.assertRaises(sdk.ContextNotFoundError, self.sandbox.get_context, 'nobody')
        self.assertRaises(sdk.ExecNotFoundError, self.sandbox.get_process, 'exec_0')
        self.assertRaises(TypeError, self.context.exec, 'true', colour=1)
        with self.assertRaises(sdk.AirlockError) as bad:
            self.context.exec(['true'], cwd='relative')
        self.assertEqual(bad.exception.errors[0]['pointer'], '/cwd')

    def test_exec_never_raises_for_a_failing_command(self):
        failed = self.context.exec('echo out; echo err >&2; exit 3')
        self.assertEqual((failed.stdout, failed.stderr, failed.exit_code, failed.success), ('out\n', 'err\n', 3, False))
        with self.assertRaises(sdk.ExecError) as error:
            failed.check()
        self.assertIs(error.exception.result, failed)
        self.assertEqual(self.context.exec(['no-such-program']).exit_code, 127)
        self.assertEqual(self.context.exec('kill -9 $$').signal, 'SIGKILL')
        self.assertTrue(self.context.exec(['sleep', '100'], timeout=0.1, grace=0.1).timed_out)
        word = 'a \'b\' "c" $HOME \\ \n'
        self.assertEqual(self.context.exec(f'printf %s {sdk.quote(word)}').stdout, word)
        self.assertEqual(self.context.exec(r"printf 'a\0b\377'").bytes(), b'a\0b\xff')
        self.assertEqual(self.context.exec(['wc', '-c'], stdin={'text': 'abc'}).check().stdout, '3\n')

    def test_streams_end_with_exit(self):
        events = list(self.context.exec_stream('echo out; exit 4'))
        self.assertEqual([each.type for each in events], ['start', 'stdout', 'exit'])
        self.assertEqual((events[1].data, events[2].result.exit_code), (b'out\n', 4))
        # Leaving the loop ends the program.
        stream = self.context.exec_stream(['sleep', '4712'])
        process = self.sandbox.get_process(next(stream).raw['id'])
        stream.close()
        self.assertEqual(process.wait().signal, 'SIGKILL')

    def test_a_stream_that_is_cut_off_is_no_success(self):
        class Cut(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"type":"start","cursor":"o0.e0","id":"exec_1","pid":1}\n'
                                 b'{"type":"stdout","cursor":"o1.e0","text":"x"}\n{"type":"exi')

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(('127.0.0.1', 0), Cut)
        threading.Thread(target=server.handle_request, daemon=True).start()
        fake = sdk.Context(type(self.sandbox._http)(f'http://127.0.0.1:{server.server_port}', 'token'), 'x')
        with self.assertRaises(sdk.StreamInterruptedError) as cut:
            list(fake.exec_stream('x'))
        server.server_close()
        self.assertEqual((cut.exception.exec_id, cut.exception.cursor), ('exec_1', 'o1.e0'))

    def test_a_program_is_found_again_by_its_id(self):
        cat = self.context.spawn(['cat'])
        cat.write('hello\n')
        again = self.sandbox.get_process(cat.id)
        self.assertEqual(again.pid, cat.pid)
        again.close_stdin()
        self.assertEqual(again.wait().exit_code, 0)
        self.assertEqual(again.output().stdout, 'hello\n')
        self.assertEqual(b''.join(each.data for each in again.logs(since='o3.e0') if each.data), b'lo\n')
        self.assertIn(cat.id, [each.id for each in self.context.processes()])
        sleeping = self.context.spawn('sleep 1000')
        sleeping.kill('SIGTERM')
        self.assertEqual(sleeping.wait().signal, 'SIGTERM')
        terminal = self.context.spawn(['sh'], tty={'cols': 90, 'rows': 20})
        terminal.write('stty size; exit 5\n')
        self.assertEqual(terminal.wait().exit_code, 5)
        self.assertIn('20 90', terminal.output().stdout)

    def test_ports(self):
        text = 'import socket, time; s = socket.socket(); s.bind(("127.0.0.1", 4321)); s.listen(); time.sleep(1000)'
        self.assertRaises(TimeoutError, self.context.wait_for_port, 4321, timeout=0)
        server = self.context.spawn(['python3', '-c', text])
        found = self.context.wait_for_port(4321, timeout=60)
        self.assertEqual((found['pid'], found['address']), (server.pid, '127.0.0.1'))
        self.assertEqual([each['port'] for each in self.context.ports()], [4321])
        server.kill('SIGKILL')

    def test_a_shell_ahead(self):
        with self.sandbox.create_context('ahead', cwd=WORK) as context:
            shell = context.start_shell('build')
            self.assertEqual(shell.describe()['name'], 'build')
            shell.exec('A=1')
            self.assertEqual(shell.exec('echo $A').stdout, '1\n')
            self.assertEqual(shell.end()['survivors'], 0)
            self.assertRaises(sdk.ShellNotFoundError, shell.describe)

    def test_cwd_and_environment(self):
        for persistent in (True, False):
            with self.sandbox.create_context('state', cwd=WORK, env={'A': '1'}, persistent=persistent) as own:
                self.assertEqual(own.persistent, persistent)
                own.exec('export A=2 B=3; cd /tmp')
                own.set_env({'B': "it's", 'A': None})
                env = own.get_env()
                self.assertEqual((env.get('A'), env['B']), (None, "it's"))
                own.cd('/usr')
                own.exec('cd /')
                own.cd('/usr')
                own.cd('lib')
                self.assertEqual(own.pwd(), '/usr/lib')
                for command in ('pwd', ['pwd']):
                    self.assertEqual(own.exec(command).stdout, '/usr/lib\n')
        self.assertRaises(sdk.ContextNotFoundError, own.describe)

    def test_shells(self):
        with self.sandbox.create_context('shells', cwd=WORK) as own:
            shell = own.shell('build')
            shell.exec('A=1')
            self.assertEqual(shell.exec('echo $A').stdout, '1\n')
            self.assertEqual(own.exec('echo "[$A]"').stdout, '[]\n')
            self.assertEqual([each['name'] for each in own.shells()], ['build', 'default'])
            running = own.spawn('read line', shell='build')
            self.assertRaises(sdk.ShellBusyError, shell.exec, 'true', on_busy='fail')
            self.assertEqual(shell.reset()['survivors'], 0)
            self.assertNotEqual(running.wait().status, 'exited')
            self.assertEqual(shell.exec('echo "[$A]"').stdout, '[]\n')
            self.assertFalse(shell.interrupt())
            self.assertRaises(sdk.ShellNotFoundError, own.shell('nobody').interrupt)

    def test_files(self):
        files = self.context.files
        made = files.write('py/f', b'a\0b\xff', mode='0640', mkdirs=True)
        self.assertEqual((made['size'], made['mode']), (4, '0640'))
        self.assertEqual((files.read('py/f'), files.read('py/f', offset=1, length=2)), (b'a\0b\xff', b'\0b'))
        self.assertEqual(self.context.exec(['od', '-An', '-tx1', 'py/f']).stdout, ' 61 00 62 ff\n')
        self.assertRaises(sdk.PreconditionFailedError, files.write, 'py/f', 'x', if_none_match='*')
        self.assertRaises(sdk.PreconditionFailedError, files.write, 'py/f', 'x', if_match='"1"')
        files.write('py/f', 'schön', if_match=made['etag'])
        self.assertEqual(files.read_text('py/f'), 'schön')
        files.write(b'py/n\xff', (b'x' * 100_000 for _ in range(30)))
        self.assertEqual(sum(map(len, files.stream(b'py/n\xff'))), 3_000_000)
        with open(WORK + '/py/f', 'rb') as file:
            files.write('py/copy', file)
        listed = files.list('py')
        self.assertEqual([each.get('nameBase64', each['name']) for each in listed['items']], ['copy', 'f', 'bv8='])
        files.mkdir('py/a/b', parents=True)
        files.move('py/copy', 'py/a/b/copy')
        self.assertEqual(files.stat('py/a/b/copy')['type'], 'file')
        with self.assertRaises(sdk.NoSuchFileError) as missing:
            files.read('py/copy')
        self.assertEqual(missing.exception.status, 404)
        with self.assertRaises(sdk.AirlockError) as full:
            files.remove('py')
        self.assertEqual(full.exception.code, 'folder-not-empty')
        files.remove('py', recursive=True)
        self.assertFalse(os.path.exists(WORK + '/py'))

    def test_a_terminal(self):
        with self.context.terminal(['sh'], cols=90, rows=20, env={'MARK': 'it'}, idle_timeout=60) as terminal:
            terminal.write('stty size; echo is-$MARK\n')
            shown = b''
            while b'is-it' not in shown:
                shown += terminal.read(timeout=60)
            self.assertIn(b'20 90', shown)
            self.assertEqual(terminal.state, 'connected')
            self.assertEqual([each['id'] for each in self.context.terminals()], [terminal.id])
            # Another thread types.
            typist = threading.Thread(target=terminal.write, args=('exit 4\n',))
            typist.start()
            self.assertEqual(terminal.wait(60).exit_code, 4)
            typist.join()
            self.assertEqual((terminal.state, terminal.read()), ('ended', b''))
            self.assertRaises(sdk.UnreachableError, terminal.write, 'x')
        with self.assertRaises(TypeError):
            self.context.terminal(colour=1)
        # A killed one; a reset one; one that is gone.
        terminal = self.context.terminal(['cat'])
        self.assertRaises(TimeoutError, terminal.read, timeout=0.05)
        before = terminal.exec_id
        terminal.reset()
        terminal.write('again\n')
        shown = b''
        while shown.count(b'again') < 2:
            shown += terminal.read(timeout=60)
        self.assertNotEqual(terminal.exec_id, before)
        terminal.kill()
        self.assertEqual(terminal.wait(60).signal, 'SIGHUP')
        with self.assertRaises(sdk.AirlockError) as gone:
            self.context.attach_terminal('term_none')
        self.assertEqual(gone.exception.code, 'terminal-not-found')

    def test_lifespan_and_repetition(self):
        own = self.sandbox.create_context('brief', cwd=WORK, ttl=60, idle_timeout=60, idempotency_key='k')
        self.assertEqual(self.sandbox.create_context('brief', cwd=WORK, ttl=60, idle_timeout=60,
                                                     idempotency_key='k').name, 'brief')
        first, second = (own.exec('echo $RANDOM', idempotency_key='once') for _ in range(2))
        self.assertEqual((first.id, first.stdout), (second.id, second.stdout))
        own.set_lifespan(ttl=None)
        described = own.describe()
        self.assertEqual((described['ttlMs'], described['idleTimeoutMs']), (None, 60_000))
        own.destroy()

    def test_routing(self):
        self.sandbox.create_context('children', cwd=WORK, persistent=False)
        with self.sandbox.create_context('agents', cwd=WORK, child_context='children') as agents:
            events = self.sandbox.route_events(from_context='agents')
            found = []
            thread = threading.Thread(target=lambda: found.append(next(events)))
            thread.start()
            while not found:
                agents.exec(['python3', '-c', 'import os; os.system("true")'])
            thread.join()
            events.close()
            self.assertEqual(found[0]['to'], 'children')
            self.assertEqual(agents.explain_route(['/bin/ls'])['to'], 'children')
            agents.set_child_context('python')
            self.assertEqual(agents.describe()['childContext'], 'python')

    def test_the_daemon(self):
        self.assertEqual(self.sandbox.health()['status'], 'ok')
        self.assertEqual(self.sandbox.info()['api'], 'v1')
        self.assertEqual([each['port'] for each in self.sandbox.ports()], [8080])
        self.assertIn('user', [each['name'] for each in self.sandbox.list_contexts()])
        self.assertEqual(self.sandbox.exec('echo there').stdout, 'there\n')


if __name__ == '__main__':
    unittest.main()
