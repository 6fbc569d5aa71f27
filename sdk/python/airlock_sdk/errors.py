"""What can go wrong. A program that fails is a Result, not an error."""


class AirlockError(Exception):
    """What the API refused to do. `code` is stable (docs/API.md)."""

    def __init__(self, message, *, code='internal', status=0, request_id=None, retryable=False, errors=()):
        super().__init__(message)
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retryable = retryable
        self.errors = list(errors)


class AuthError(AirlockError):
    pass


class ContextExistsError(AirlockError):
    pass


class ContextNotFoundError(AirlockError):
    pass


class ExecNotFoundError(AirlockError):
    pass


class NoSuchFileError(AirlockError):
    pass


class PreconditionFailedError(AirlockError):
    """The file is in another state than was asked for (`if_match`, `if_none_match`)."""


class ShellBusyError(AirlockError):
    pass


class ShellNotFoundError(AirlockError):
    pass


class RateLimitError(AirlockError):
    """Try again later."""


class UnreachableError(AirlockError):
    """Nobody answered. The request may have arrived."""

    def __init__(self, message):
        super().__init__(message, code='unreachable', retryable=True)


class StreamInterruptedError(AirlockError):
    """A stream ended without telling how the program did: go on from `cursor`."""

    def __init__(self, exec_id, cursor):
        super().__init__('the stream was cut off before the end of the program', code='stream-interrupted',
                         retryable=True)
        self.exec_id = exec_id
        self.cursor = cursor


class ExecError(AirlockError):
    """Raised by Result.check() only."""

    def __init__(self, result):
        how = result.signal or ('time limit' if result.timed_out else f'exit code {result.exit_code}')
        super().__init__(f'the program failed: {how}', code='exec-failed')
        self.result = result


_CLASSES = {
    'unauthorized': AuthError,
    'forbidden-scope': AuthError,
    'forbidden-place': AuthError,
    'forbidden-host': AuthError,
    'context-exists': ContextExistsError,
    'context-not-found': ContextNotFoundError,
    'exec-not-found': ExecNotFoundError,
    'file-not-found': NoSuchFileError,
    'precondition-failed': PreconditionFailedError,
    'shell-busy': ShellBusyError,
    'shell-not-found': ShellNotFoundError,
    'too-many-requests': RateLimitError,
}


def error_of(problem):
    """The error for a problem+json document."""
    kind = _CLASSES.get(problem.get('code'), AirlockError)
    errors = problem.get('errors', [])
    where = '; '.join(f"{each.get('pointer') or '(body)'}: {each.get('detail')}" for each in errors)
    words = [problem.get('title', 'the request failed'), where or problem.get('detail')]
    return kind(': '.join(word for word in words if word), code=problem.get('code', 'internal'),
                status=problem.get('status', 0), request_id=problem.get('requestId'),
                retryable=problem.get('retryable', False), errors=errors)
