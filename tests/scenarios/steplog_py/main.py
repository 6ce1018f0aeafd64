"""Sessions are found by a weak dictionary, so that they go when the last of their users has gone.
Every step is logged; the handler keeps the records in memory until something bad happens, and
writes them then."""
import asyncio
import logging
import logging.handlers
import random
import sys
import weakref

log = logging.getLogger("assistant")
log.setLevel(logging.DEBUG)
log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(1000000, logging.ERROR,
                                              logging.StreamHandler(sys.stdout)))

sessions = weakref.WeakValueDictionary()


class Session:
    def __init__(self, user):
        self.user = user
        self.profile = {"user": user, "plan": "free", "limits": {"day": 100, "minute": 5}}
        self.scratch = bytearray(24 * 1024)
        self.messages = []

    def __str__(self):
        return "<session of %s, %d messages>" % (self.user, len(self.messages))


def session_of(user):
    found = sessions.get(user)
    if found is None:
        found = sessions[user] = Session(user)
    return found


async def visit(user, questions):
    session = session_of(user)
    log.info("%s has begun", session)
    for k in range(questions):
        session.messages.append({"role": "user", "content": "question %d of %s" % (k, user)})
        await asyncio.sleep(0.001)
        session.messages.append({"role": "assistant", "content": "answer %d " % k * 8})
        log.debug("%s was answered", session)


async def main():
    rng = random.Random(9)
    running = set()
    for k in range(9000):
        task = asyncio.create_task(visit("user-%d" % k, rng.randrange(1, 5)))
        running.add(task)
        task.add_done_callback(running.discard)
        if len(running) > 20:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if k % 1500 == 1499:
            print(len(sessions), "sessions")
    await asyncio.gather(*running)


asyncio.run(main())
