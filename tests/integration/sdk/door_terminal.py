"""A terminal by a context's own door: DOOR use|lose. Prints what it has seen."""

import json
import re
import sys

import airlock_sdk as sdk


def shows(terminal, text):
    """All that the terminal shows until this has come."""
    shown = ''
    while text not in shown:
        shown += terminal.read(timeout=60).decode()
    return shown


def use(context):
    terminal = context.terminal(['sh'], cols=90, rows=20, env={'MARK': 'it'})
    terminal.write('stty size; echo is-$MARK\n')
    size = '20 90' in shows(terminal, 'is-it')
    terminal.resize(70, 10)
    # As one long line: more than a frame of the client's.
    terminal.write((': ' + 'x' * 3000 + '\n') * 30 + 'stty size\n')
    shows(terminal, '10 70')
    terminal.write('seq 20000; echo end-$((1+1))\n')
    # The first may stand behind prompts, if those were typed ahead of.
    lines = len(re.findall(r'(?m)^(?:[#$] )*\d+\r$', shows(terminal, 'end-2')))
    try:
        context.attach_terminal(terminal.id)
        busy = None
    except sdk.AirlockError as error:
        busy = error.code
    other = context.attach_terminal(terminal.id, takeover=True)
    try:
        while terminal.read(timeout=60):
            pass
    except sdk.AirlockError:
        pass
    other.write('exit 4\n')
    print(json.dumps({'size': size, 'lines': lines, 'busy': busy, 'left': terminal.state, 'exitCode': other.wait(60).exit_code}))


def lose(context):
    script = 'i=0; while :; do i=$((i+1)); echo line-$i; sleep 0.02; done'
    with context.terminal(['sh', '-c', script]) as terminal:
        first = terminal._socket
        print('attached', flush=True)
        text, enough = '', None
        while enough is None or text.count('\n') < enough:
            text += terminal.read(timeout=60).decode()
            if enough is None and terminal._socket is not first:
                enough = text.count('\n') + 20
        terminal.kill()
    lines = text.split('\r\n')[:-1]
    wrong = [line for i, line in enumerate(lines) if line != f'line-{i + 1}']
    print(json.dumps({'losses': 1, 'wrong': wrong}))


user = sdk.connect('unix:' + sys.argv[1]).get_context('user')
{'use': use, 'lose': lose}[sys.argv[2]](user)
