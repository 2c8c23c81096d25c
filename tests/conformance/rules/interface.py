"""What a layer offers: calls, attributes and names."""

from inspect import iscoroutinefunction
from typing import Any

import pytest

from ..base import LayerRules, MakeLayer, receive, unique

LONGEST = 99  # characters; Channels' own check refuses the hundredth that the specification grants
HOSTILE = (".", "..", "-", "_", "...", "-rf", "CON", "nul.txt", ".hidden", "a" * LONGEST)
INVALID = ("", "with space", "a/b", "../up", "naïve", "line\nfeed", "nul\0", "a" * 101, None, b"x")


class Interface(LayerRules):
    """The object that the specification describes."""

    async def test_calls_are_coroutines(self, layer: Any) -> None:
        """send, receive, new_channel, the group calls and flush are coroutines."""
        calls = "send receive new_channel group_add group_discard group_send flush"
        for call in calls.split():
            assert iscoroutinefunction(getattr(layer, call)), call

    async def test_extensions_are_listed(self, layer: Any) -> None:
        """extensions lists groups and flush."""
        assert {"groups", "flush"} <= set(layer.extensions)

    async def test_channel_full_is_an_attribute(self, layer: Any) -> None:
        """ChannelFull is an attribute of the layer."""
        assert issubclass(layer.ChannelFull, Exception)

    async def test_message_too_large_is_an_attribute(self, layer: Any) -> None:
        """MessageTooLarge is an attribute of the layer."""
        assert issubclass(layer.MessageTooLarge, Exception)

    async def test_group_expiry_is_an_attribute(self, make_layer: MakeLayer) -> None:
        """group_expiry is an attribute, in seconds, one day unless set otherwise."""
        assert make_layer().group_expiry == 86_400
        assert make_layer(group_expiry=77).group_expiry == 77


class Names(LayerRules):
    """Names of channels and groups."""

    async def test_new_channel_is_process_specific_and_unique(self, layer: Any) -> None:
        """new_channel() gives a new process-specific name, with one "!", each time."""
        names = [await layer.new_channel() for _ in range(50)]
        assert len(set(names)) == 50
        assert all(name.count("!") == 1 for name in names)

    async def test_longest_names_work(self, layer: Any) -> None:
        """Names may be as long as Channels' own check allows."""
        channel = await layer.new_channel()
        group = unique("g").ljust(LONGEST, "g")
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "long"})
        assert await receive(layer, channel) == {"type": "long"}

    async def test_every_valid_name_is_a_group_of_its_own(self, layer: Any) -> None:
        """Every valid name is its own: ".", "..", and names that differ only in case."""
        names = (*HOSTILE, "Case", "case", "CASE")
        members = {name: await layer.new_channel() for name in names}
        for name, channel in members.items():
            await layer.group_add(name, channel)
        for name in names:
            await layer.group_send(name, {"type": "named", "name": name})
        for name, channel in members.items():
            assert (await receive(layer, channel))["name"] == name

    async def test_every_valid_name_is_a_channel_of_its_own(self, layer: Any) -> None:
        """The same for named channels, which a layer may keep as files or keys."""
        names = (*HOSTILE, "Case", "case", "CASE")
        for name in names:
            await layer.send(name, {"type": "named", "name": name})
        for name in names:
            assert (await receive(layer, name, 1.5))["name"] == name

    async def test_invalid_names_are_refused(self, layer: Any) -> None:
        """A name with other characters, or too long, raises TypeError from every call."""
        channel = await layer.new_channel()
        for name in INVALID:
            with pytest.raises(TypeError):
                await layer.send(name, {"type": "x"})
            with pytest.raises(TypeError):
                await receive(layer, name)
            with pytest.raises(TypeError):
                await layer.group_send(name, {"type": "x"})
            for call in (layer.group_add, layer.group_discard):
                for arguments in ((name, channel), ("group", name)):
                    with pytest.raises(TypeError):
                        await call(*arguments)
