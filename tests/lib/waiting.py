"""waiting.py - wait for a state, never for a time: a busy machine takes long."""
import time


def until(what, seconds=60, every=0.01):
    """Wait for a condition; return its last value, which is false if it did not come true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(every)
    return what()
