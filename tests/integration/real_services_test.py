"""The services of examples/services, unchanged, started as shipped: a notebook that executes a cell over
its WebSocket, two web servers, and a database used from a user context."""

import os
import signal
import urllib.request

from example_services import ExampleCase
from harness import main
from network import OTHER_ADDRESS, PYTHON, fetch, own_network


def setUpModule():
    own_network()


# Starts a kernel and runs a cell: prints what the cell printed. Arguments: base URL, token, code.
CELL = r'''
import asyncio, json, sys, uuid
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect
base, token, code = sys.argv[1:]
auth = {"Authorization": "token " + token}
async def main():
    reply = await AsyncHTTPClient().fetch(HTTPRequest(base + "/api/kernels", "POST", auth, body="{}",
                                                      request_timeout=120))
    kernel = json.loads(reply.body)["id"]
    url = base.replace("http", "ws", 1) + "/api/kernels/" + kernel + "/channels"
    socket = await websocket_connect(HTTPRequest(url, headers=auth))
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "session": "s",
              "version": "5.3"}
    await socket.write_message(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {},
        "content": {"code": code, "silent": False, "store_history": False, "user_expressions": {},
                    "allow_stdin": False, "stop_on_error": True}}))
    while True:
        message = json.loads(await socket.read_message())
        if message["parent_header"].get("msg_id") != header["msg_id"]: continue
        if message["msg_type"] == "stream": print(message["content"]["text"], end="", flush=True)
        if message["msg_type"] == "error": sys.exit("\n".join(message["content"]["traceback"]))
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle": break
    await AsyncHTTPClient().fetch(HTTPRequest(base + "/api/kernels/" + kernel, "DELETE", auth))
asyncio.run(main())
'''


class Examples(ExampleCase):

    def kill_and_await(self, name):
        restarts = self.service(name)['restarts']
        os.kill(self.pid_of_service(name), signal.SIGKILL)
        self.await_service(name, lambda s: s['state'] == 'ready' and s['restarts'] > restarts, 'back')

    def get(self, url):
        with urllib.request.urlopen(url, timeout=60) as reply:
            return reply.read().decode()

    def test_notebook(self):
        self.serve_example('notebook')
        code = 'import os; print(6 * 7, os.getuid())'
        run = lambda context: self.exec_in(context, PYTHON, '-c', CELL, 'http://127.0.0.1:8888', 'NOTEBOOK_TOKEN', code)
        expected = f"42 {self.service('notebook')['uid']}\n"
        for attempt in ('fresh', 'after a SIGKILL'):
            ran = run('user')
            self.assertEqual((ran.status, ran.out), (0, expected), f'{attempt}: {ran.err}\n{self.log("notebook")}')
            self.kill_and_await('notebook')
        self.assertNotIn('NOTEBOOK_TOKEN', self.exec_in('user', 'sh', '-c', 'cat /proc/*/environ').out)
        self.assertEqual(self.exec_in('user', 'nc', '-l', '8888').err, 'nc: Address already in use\n')
        self.assertEqual(fetch(OTHER_ADDRESS, 8888), 'TimeoutError', 'it asked for 127.0.0.1 only')

    def test_web_servers(self):
        self.serve_example('web', 'node')
        for attempt in range(2):
            self.assertIn('Directory listing', self.get('http://127.0.0.1:8080/'))
            self.assertIn('Directory listing', self.get(f'http://{OTHER_ADDRESS}:8080/'))
            self.assertEqual(self.get('http://127.0.0.1:8081/'), f"hello from pid {self.service('node')['pid']}\n")
            for name in ('web', 'node'):
                self.kill_and_await(name)
        self.assertEqual(fetch(OTHER_ADDRESS, 8081), 'TimeoutError')
        taken = self.exec_in('user', 'node', '-e', 'require("http").createServer().listen(8081)')
        self.assertIn('EADDRINUSE', taken.err)
        self.assertEqual(self.airlock('restart', 'node').status, 0)
        self.await_service('node', lambda s: s['lastEnd'] == 'exit code 0' and s['state'] == 'ready', 'stopped politely')

    def test_database(self):
        self.serve_example('database')
        def psql(command, password='DATABASE_PASSWORD'):
            return self.exec_in('user', 'psql', '-h', '127.0.0.1', '-U', 'postgres', '-AtXc', command,
                                options=('-e', 'PGPASSWORD=' + password))
        made = psql('create table t (x int); insert into t values (6), (7)')
        self.assertEqual(made.status, 0, made.err + self.log('database'))
        wrong = psql('select 1', 'wrong')
        self.assertIn('password authentication failed', wrong.err)
        self.kill_and_await('database')
        self.assertEqual(psql('select sum(x), inet_client_addr() from t').out, '13|127.0.0.1\n')
        self.assertEqual(self.service('database')['user'], 'postgres')
        self.assertEqual(self.airlock('restart', 'database').status, 0)
        stopped = self.await_service('database', lambda s: s['restarts'] == 2 and s['state'] == 'ready', 'back')
        self.assertEqual(stopped['lastEnd'], 'exit code 0')
        self.assertEqual(psql('select count(*) from t').out, '2\n')


if __name__ == '__main__':
    main()
