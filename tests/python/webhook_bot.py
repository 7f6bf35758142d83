"""Runs a bot behind a webhook that answers in the webhook's response, as aiogram's own handler does: in multipart.

    pip install aiogram==3.31.0
    python tests/python/webhook_bot.py http://127.0.0.1:8081 130:AAwebhook
"""

import asyncio
import json
import sys
import urllib.request

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.methods import SendMessage
from aiogram.types import Message
from aiogram.webhook.aiohttp_server import SimpleRequestHandler, setup_application
from aiohttp import web

USER = 7101
SECRET = "s3cr3t"
TEXTS = ["hello", "a & b = c", "здравствуй ☂"]


async def ask(base, path, body=None):
    """What `/__admin/PATH` answers; POST if there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/__admin/{path}", data, {"content-type": "application/json"})
    return await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(request, timeout=10)))


def dispatcher():
    """An echo bot that makes no call of its own."""
    dispatcher = Dispatcher()

    @dispatcher.message(F.text)
    async def echo(message: Message):
        return SendMessage(chat_id=message.chat.id, text=f"echo {message.text}")

    return dispatcher


async def serve(bot):
    """Listens on a free port; the runner, and the webhook's URL."""
    app = web.Application()
    echo = dispatcher()
    handler = SimpleRequestHandler(echo, bot, handle_in_background=False, secret_token=SECRET)
    handler.register(app, path="/hook")
    setup_application(app, echo, bot=bot)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/hook"


async def sent(base, bot_id, count):
    """The bot's `sendMessage` calls in the journal, once there are so many."""
    for _ in range(200):
        entries = (await ask(base, f"journal?method=sendMessage&bot={bot_id}"))["entries"]
        if len(entries) >= count:
            return entries
        await asyncio.sleep(0.05)
    raise AssertionError(f"{len(entries)} of {count} answers were made: {entries}")


async def main(base, token):
    bot = Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(base)))
    runner, url = await serve(bot)
    try:
        await bot.set_webhook(url, secret_token=SECRET)
        for text in TEXTS:
            await ask(base, "users", {"token": token, "chat": USER, "action": "write", "text": text})
        entries = await sent(base, bot.id, len(TEXTS))
        assert [(entry["chat"], entry["outcome"]) for entry in entries] == [(USER, "ok")] * len(TEXTS), entries
        verdict = next(v for v in (await ask(base, "verdict"))["bots"] if v["bot"] == bot.id)
        assert (verdict["delivered"], verdict["duplicates"]) == (len(TEXTS), 0), verdict
        info = await bot.get_webhook_info()
        assert (info.pending_update_count, info.last_error_message) == (0, None), info
    finally:
        await bot.delete_webhook()
        await runner.cleanup()
        await bot.session.close()
    print(f"the bot answered {len(TEXTS)} times in its webhook's responses")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
