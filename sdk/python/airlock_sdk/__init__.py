"""Runs programs in the contexts of an Airlock daemon, over its HTTP API (docs/SDK.md)."""

from .context import Context, Shell, quote
from .errors import (AirlockError, AuthError, ContextExistsError, ContextNotFoundError, ExecError, ExecNotFoundError,
                     NoSuchFileError, PreconditionFailedError, RateLimitError, ShellBusyError,
                     ShellNotFoundError, StreamInterruptedError, UnreachableError)
from .files import Files
from .process import Event, Process, Result
from .sandbox import Sandbox, connect
from .terminal import Terminal

__all__ = [
    'AirlockError', 'AuthError', 'Context', 'ContextExistsError', 'ContextNotFoundError', 'Event', 'ExecError',
    'ExecNotFoundError', 'Files', 'NoSuchFileError', 'PreconditionFailedError', 'Process', 'RateLimitError', 'Result',
    'Sandbox', 'Shell', 'ShellBusyError', 'ShellNotFoundError', 'StreamInterruptedError', 'Terminal', 'UnreachableError', 'connect',
    'quote',
]
