"""Calls every method of fake-telegram/data/methods.json through aiogram and fails unless aiogram parses each answer.

    pip install aiogram==3.31.0
    python tests/python/all_methods.py http://127.0.0.1:8081 110:AAall-methods

Arguments are made from the types of aiogram's own method classes: the required ones, and MORE where the API asks for
one of several. Each call has a chat of its own, so no chat's limit is met; where the token's is, the call is made again.
"""

import asyncio
import datetime
import enum
import json
import pathlib
import sys
import types
import typing

from aiogram import Bot, methods
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import TelegramBadRequest, TelegramRetryAfter
from aiogram.types import BufferedInputFile, InputFile, InputMediaPhoto
from pydantic import BaseModel

DATA = pathlib.Path(__file__).parents[2] / "fake-telegram" / "data" / "methods.json"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
# After these the server may refuse everything else.
LAST = ["setWebhook", "deleteWebhook", "close", "logOut"]
# Refusals that are the right answer: no user has asked anything, and a server may be too young to close.
RIGHT_REFUSALS = {
    "answerCallbackQuery": "query is too old and response timeout expired or query id is invalid",
    "answerInlineQuery": "query is too old and response timeout expired or query id is invalid",
    "close": "retry after",
}


class Arguments:
    """Plausible arguments for one call in one chat."""

    def __init__(self, bot, chat_id):
        self.bot = bot
        self.chat_id = chat_id

    async def prepare(self, method):
        """What must be there before the call: the message that it is about, the file that it names."""
        self.message = None
        name = method.__api_method__
        if name == "getFile":
            document = BufferedInputFile(PNG, "a.png")
            sent = await again(lambda: self.bot.send_document(self.chat_id, document))
            self.file_id = sent.document.file_id
        elif "message_id" in method.model_fields or "message_ids" in method.model_fields:
            send = {
                "stopPoll": lambda: self.bot.send_poll(self.chat_id, "Which?", ["a", "b"]),
                "editMessageCaption": lambda: self.bot.send_photo(self.chat_id, BufferedInputFile(PNG, "a.png")),
                "editMessageLiveLocation": lambda: self.bot.send_location(self.chat_id, 1, 2, live_period=60),
                "stopMessageLiveLocation": lambda: self.bot.send_location(self.chat_id, 1, 2, live_period=60),
            }.get(name, lambda: self.bot.send_message(self.chat_id, "before"))
            self.message = (await again(send)).message_id

    def of(self, method):
        """Arguments by name."""
        names = [name for name, field in method.model_fields.items() if field.is_required()]
        names += MORE.get(method.__api_method__, [])
        return {name: self.value(name, method.model_fields[name].annotation) for name in names}

    def value(self, name, annotation):
        """A value for one parameter or field."""
        if name in FIXED:
            return FIXED[name]
        if name in ("chat_id", "from_chat_id"):
            return self.chat_id
        if name == "message_id" and self.message is not None:
            return self.message
        if name == "message_ids":
            return [self.message]
        if name == "file_id":
            return self.file_id
        return self.of_type(name, annotation)

    def of_type(self, name, annotation):
        origin = typing.get_origin(annotation)
        choices = typing.get_args(annotation)
        if origin is typing.Annotated:
            return self.of_type(name, choices[0])
        if origin is typing.Literal:
            return choices[0]
        if origin is list:
            return [self.value(name, choices[0])] * (2 if name == "media" else 1)
        if origin in (typing.Union, types.UnionType):
            files = [choice for choice in choices if isinstance(choice, type) and issubclass(choice, InputFile)]
            return self.of_type(name, (files or choices)[0])
        if issubclass(annotation, InputFile):
            return BufferedInputFile(PNG, "a.png")
        if issubclass(annotation, enum.Enum):
            return next(iter(annotation))
        if issubclass(annotation, BaseModel):
            fields = annotation.model_fields.items()
            return annotation(**{n: self.value(n, f.annotation) for n, f in fields if f.is_required()})
        if annotation is datetime.datetime:
            return datetime.datetime(2030, 1, 1)
        return {int: 1, float: 1.5, bool: True, str: "text"}[annotation]


# What a value of its type alone would not do for.
FIXED = {
    "action": "typing",
    "callback_query_id": "1",
    "url": "https://example.com/hook",
    "user_id": 42,
    "web_app_url": "https://example.com/",
}
# Parameters that the API does not always require.
MORE = {
    "editMessageCaption": ["chat_id", "message_id", "caption"],
    "editMessageLiveLocation": ["chat_id", "message_id"],
    "editMessageMedia": ["chat_id", "message_id"],
    "editMessageReplyMarkup": ["chat_id", "message_id", "reply_markup"],
    "editMessageText": ["chat_id", "message_id", "text"],
    "sendMessageDraft": ["text"],
    "setChatDescription": ["description"],
    "setGameScore": ["chat_id", "message_id"],
    "stopMessageLiveLocation": ["chat_id", "message_id"],
}


async def again(call):
    """Makes a call, and once more whenever a limit asks for it."""
    while True:
        try:
            return await call()
        except TelegramRetryAfter as refusal:
            if refusal.retry_after > 60:
                raise
            await asyncio.sleep(refusal.retry_after)


async def run(bot):
    """Calls all methods; the result is a list of what went wrong."""
    by_name = {}
    for name in methods.__all__:
        method = getattr(methods, name)
        if isinstance(getattr(method, "__api_method__", None), str):
            by_name[method.__api_method__] = method
    names = [method["name"] for method in json.loads(DATA.read_text())["methods"]]
    wrong = [f"{name}: aiogram has it, the data file has not" for name in by_name.keys() - set(names)]
    names.sort(key=lambda name: LAST.index(name) if name in LAST else -1)
    for number, name in enumerate(names):
        method = by_name[name]
        arguments = Arguments(bot, -1_000 - number)
        try:
            await arguments.prepare(method)
            call = method(**arguments.of(method))
            result = await again(lambda: bot(call))
            if method.__returning__ is bool and result is not True:
                wrong.append(f"{name}: {result!r} is not true")
        except (TelegramBadRequest, TelegramRetryAfter) as refusal:
            if name not in RIGHT_REFUSALS or RIGHT_REFUSALS[name] not in str(refusal).lower():
                wrong.append(f"{name}: {refusal!r}")
        except Exception as error:  # whatever it is, the other methods are worth a call
            wrong.append(f"{name}: {error!r}")
    print(f"{len(names) - len(wrong)} of {len(names)} methods")
    return wrong


async def main(base, token):
    bot = Bot(token, session=AiohttpSession(api=TelegramAPIServer.from_base(base)))
    try:
        return await run(bot)
    finally:
        await bot.session.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    failures = asyncio.run(main(*sys.argv[1:]))
    sys.exit("\n".join(failures) or 0)
