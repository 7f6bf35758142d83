"""Runs an echo bot, with aiogram's own dispatcher and long polling, against the fake: somebody writes, the bot answers,
and the server's verdict shows it.

    pip install aiogram==3.31.0
    python tests/python/echo_bot.py http://127.0.0.1:8081 120:AAecho
"""

import asyncio
import json
import sys
import urllib.request

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import CommandStart
from aiogram.types import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message

USER = 7001


class Admin:
    """The control of the server."""

    def __init__(self, base, token):
        self.base, self.token = base, token

    async def ask(self, path, body=None):
        """What `/__admin/PATH` answers; POST if there is a body."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/__admin/{path}", data, {"content-type": "application/json"})
        return await asyncio.to_thread(lambda: json.load(urllib.request.urlopen(request, timeout=10)))

    async def act(self, **act):
        """Somebody does something."""
        return await self.ask("users", {"token": self.token, "chat": USER, **act})

    async def verdict(self):
        """The verdict on this bot."""
        bot = int(self.token.split(":")[0])
        return next(v for v in (await self.ask("verdict"))["bots"] if v["bot"] == bot)


def dispatcher(seen):
    """An echo bot that puts whatever it was told into `seen`."""
    dispatcher = Dispatcher()

    @dispatcher.message(CommandStart())
    async def start(message: Message):
        button = InlineKeyboardButton(text="Yes", callback_data="yes")
        sent = await message.answer("Shall I?", reply_markup=InlineKeyboardMarkup(inline_keyboard=[[button]]))
        await seen.put(("start", sent.message_id))

    @dispatcher.message(F.text)
    async def echo(message: Message):
        sent = await message.reply(message.text)
        assert sent.reply_to_message.text == message.text, sent
        await seen.put(("echo", message.text))

    @dispatcher.callback_query()
    async def tapped(query: CallbackQuery):
        assert query.message.text == "Shall I?", query
        await query.answer("ok")
        await query.message.edit_text("I shall.")
        await seen.put(("tapped", query.data))

    return dispatcher


async def talk(admin, seen):
    """The users' part of the conversation; fails where the bot does not play its own."""

    async def next_seen():
        return await asyncio.wait_for(seen.get(), 20)

    await admin.act(action="write", text="/start")
    kind, message_id = await next_seen()
    assert kind == "start", kind
    await admin.act(action="tap", message_id=message_id, data="yes")
    assert await next_seen() == ("tapped", "yes")
    for text in ["hello", "hello", "здравствуй ☂"]:
        await admin.act(action="write", text=text)
        assert await next_seen() == ("echo", text)
    verdict = await admin.verdict()
    # "Shall I?" and three echoes, one of them said before.
    assert (verdict["delivered"], verdict["duplicates"]) == (4, 1), verdict
    assert verdict["throttled"] == {} and verdict["outcomes"]["rejected"] == 0, verdict
    await admin.act(action="block")
    journal = await admin.ask(f"journal?method=answerCallbackQuery&bot={verdict['bot']}")
    assert [entry["outcome"] for entry in journal["entries"]] == ["ok"], journal


async def main(base, token):
    bot = Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(base)))
    seen = asyncio.Queue()
    echo = dispatcher(seen)
    # The session is closed when nobody polls any more; aiogram would do it before.
    polling = asyncio.create_task(echo.start_polling(bot, handle_signals=False, close_bot_session=False))
    try:
        await talk(Admin(base, token), seen)
    finally:
        if not polling.done():
            await echo.stop_polling()
        await polling
        await bot.session.close()
    print("the bot answered 4 times")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
