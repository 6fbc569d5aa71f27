"""airlock as PID 1 of a container (here: of a PID namespace), and how a daemon ends on SIGTERM."""

import os
import signal

from harness import (AIRLOCK, Case, REFUSED, TIMED_OUT, descendants, eventually, is_running, main, members,
                     namespace, processes, runs_program)

# A PID namespace whose first process is what follows.
FIRST = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', '--']


def on_sigterm(action):
    """A program that says when it is ready, waits for SIGTERM, however early it comes (a shell that
    goes to wait just then would sleep on), and does what the Python text says."""
    return ['/usr/bin/python3', '-c',
            'import os, signal, subprocess, sys\n'
            'signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n'
            'print("ready", flush=True)\n'
            'signal.sigwait({signal.SIGTERM})\n'
            'signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})\n' + action]


class FirstProcess(Case):
    def first(self, *command, **options):
        """Starts `command` as PID 1; returns unshare's process, and PID 1's pid here."""
        process = self.start([*FIRST, *command], **options)
        return process, eventually(lambda: [pid for pid in descendants(process.pid) if runs_program(pid, command[0])],
                                   'PID 1 runs')[0]

    def served(self, *options):
        config = self.write(self.dir + '/c.yaml',
                            f'contexts: {{platform: {{cwd: {self.work}}}, user: {{cwd: {self.work}}}}}\n')
        process, pid = self.first(AIRLOCK, 'up', '--foreground', '--config', config, *options)
        eventually(lambda: self.airlock('info').status == 0, 'it serves')
        return process, pid

    def test_exit_status_of_run(self):
        for script, status in (('exit 7', 7), ('kill -9 $$', 137), ('true; exit 0', 0)):
            ended = self.run_program([*FIRST, AIRLOCK, 'run', '--', 'bash', '-c', script])
            self.assertEqual((ended.status, ended.err), (status, ''))
        self.assertEqual(self.run_program([*FIRST, AIRLOCK, 'run', '--', 'no-such-program']).status, 127)

    def test_sigterm_reaches_the_agent(self):
        # Control: without airlock the kernel drops the signals that PID 1 has no handler for.
        bare, pid = self.first('/usr/bin/sleep', '1000')
        os.kill(pid, signal.SIGTERM)
        process, pid = self.first(AIRLOCK, 'run', '--', *on_sigterm('sys.exit("asked to end")'))
        self.assertEqual(self.line_of(process), b'ready\n')
        os.kill(pid, signal.SIGTERM)
        ended = self.finish(process)
        self.assertEqual((ended.status, ended.err), (1, 'asked to end\n'))
        self.assertIsNone(bare.poll(), 'control')

    def test_orphans_are_reaped(self):
        process, pid = self.served()
        space = namespace(pid)
        # Orphans of nobody's context: as those of `docker exec` are.
        for _ in range(20):
            self.run_program(['nsenter', '--pid', '--target', str(pid), 'sh', '-c', '(sh -c "exit 3" &) & (:&)'])
        zombies = lambda: [p.pid for p in processes().values() if p.state == 'Z' and p.parent == pid]
        eventually(lambda: not zombies(), 'PID 1 reaps')
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 0)
        self.assertEqual(members(space), [])

    def test_an_idle_daemon_waits_for_nothing(self):
        process, pid = self.served('--stop-grace', '10m')
        os.kill(pid, signal.SIGTERM)
        ended = self.finish(process)
        self.assertEqual(ended.status, 0, ended.err)

    def test_jobs_get_their_grace(self):
        process, pid = self.served()
        job = self.start([AIRLOCK, 'exec', 'user', '--',
                          *on_sigterm(f'open("{self.work}/clean", "w").write("cleaned up"); sys.exit(6)')])
        self.assertEqual(self.line_of(job), b'ready\n')
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 0)
        self.assertEqual(self.finish(job).status, 6)
        with open(self.work + '/clean') as file:
            self.assertEqual(file.read(), 'cleaned up')

    def test_jobs_that_ignore_it_are_killed(self):
        process, pid = self.served('--stop-grace', '300ms')
        job = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', 'trap "" TERM; echo ready; exec sleep 1000'])
        self.assertEqual(self.line_of(job), b'ready\n')
        os.kill(pid, signal.SIGTERM)
        ended = self.finish(process)
        self.assertEqual(ended.status, TIMED_OUT)
        self.assertIn('killing 1 jobs', ended.err)
        self.finish(job)

    def test_a_second_signal_does_not_wait(self):
        process, pid = self.served('--stop-grace', '10m')
        job = self.start([AIRLOCK, 'exec', 'user', '--', 'sh', '-c', 'trap "" TERM; echo ready; exec sleep 1000'])
        self.assertEqual(self.line_of(job), b'ready\n')
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: self.airlock('info').status != 0, 'it takes no more requests')
        self.assertTrue(is_running(pid), 'control: it waits')
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 0)
        self.finish(job)

    def test_an_agent_may_start_children_to_clean_up(self):
        process, pid = self.served()
        agent = self.start([AIRLOCK, 'run', '--',
                            *on_sigterm(f'subprocess.run(["sh", "-c", "echo routed >{self.work}/routed"])')])
        self.assertEqual(self.line_of(agent), b'ready\n')
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(self.finish(process).status, 0)
        self.finish(agent)
        self.assertTrue(os.path.exists(self.work + '/routed'))

    def test_a_daemon_that_cannot_serve_says_so(self):
        ended = self.run_program([*FIRST, AIRLOCK, '--runtime-dir', '/proc/airlock', 'up', '--foreground'])
        self.expect_error(ended, REFUSED, '/proc/airlock')


if __name__ == '__main__':
    main()
