"""_decorate.py - a mark around a function. Imported when the first function is decorated in a
process that is recorded; in others the function stays as it is.

Each call, coroutine or generator gets a mark of its own. A generator works for its request while
it runs, not while its caller does something else with what it yielded."""

import functools
import inspect


def decorate(mark, function):
    """The function with `mark.again()` around each call."""
    called = getattr(function, "__call__", None)
    if inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(called):
        @functools.wraps(function)
        def wrapper(*arguments, **keywords):
            return _drive_async(function(*arguments, **keywords), mark.again())
    elif inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        @functools.wraps(function)
        async def wrapper(*arguments, **keywords):
            with mark.again():
                return await function(*arguments, **keywords)
    elif inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(called):
        @functools.wraps(function)
        def wrapper(*arguments, **keywords):
            return _drive(function(*arguments, **keywords), mark.again())
    else:
        @functools.wraps(function)
        def wrapper(*arguments, **keywords):
            with mark.again():
                return function(*arguments, **keywords)
    return wrapper


def _drive(inner, mark):
    """`yield from inner`, with the mark entered while `inner` runs."""
    with mark:
        step, given = inner.send, None
        while True:
            try:
                value = step(given)
            except StopIteration as end:
                return end.value
            mark.rest()
            try:
                step, given = inner.send, (yield value)
            except GeneratorExit:
                mark.work()
                inner.close()
                raise
            except BaseException as raised:
                step, given = inner.throw, raised
            mark.work()


async def _drive_async(inner, mark):
    with mark:
        step, given = inner.asend, None
        while True:
            try:
                value = await step(given)
            except StopAsyncIteration:
                return
            mark.rest()
            try:
                step, given = inner.asend, (yield value)
            except GeneratorExit:
                mark.work()
                await inner.aclose()
                raise
            except BaseException as raised:
                step, given = inner.athrow, raised
            mark.work()
