"""The extensions: groups, and flush."""

import asyncio
from typing import Any

from ..base import LayerRules, MakeLayer, eventually, is_quiet, receive, unique
from ..subject import Subject


class Groups(LayerRules):
    """Membership, and delivery to members."""

    async def test_group_send_reaches_every_member(self, layer: Any) -> None:
        """Every member of the group gets the message, once; members of others do not."""
        group, other = unique("group"), unique("group")
        members = [await layer.new_channel() for _ in range(10)]
        for channel in members:
            await layer.group_add(group, channel)
        stranger = await layer.new_channel()
        await layer.group_add(other, stranger)
        await layer.group_send(group, {"type": "x", "id": 1})
        for channel in members:
            assert (await receive(layer, channel))["id"] == 1
        assert await is_quiet(layer, members[0])
        assert await is_quiet(layer, stranger, 0.05)

    async def test_adding_twice_delivers_once(self, layer: Any) -> None:
        """group_add() of a member returns normally, and does not double what it gets."""
        group, channel = unique("group"), await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, channel))["id"] == 1
        assert await is_quiet(layer, channel)

    async def test_discard_ends_membership(self, layer: Any) -> None:
        """After group_discard() nothing more is delivered; the other members stay."""
        group, gone = unique("group"), await layer.new_channel()
        stays = await layer.new_channel()
        for channel in (gone, stays):
            await layer.group_add(group, channel)
        await layer.group_discard(group, gone)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, stays))["id"] == 1
        assert await is_quiet(layer, gone)

    async def test_discard_of_a_stranger_does_nothing(self, layer: Any) -> None:
        """group_discard() of a channel that is no member, or of an empty group, is no error."""
        group, member, stranger = unique("group"), await layer.new_channel(), unique()
        await layer.group_discard(group, stranger)
        await layer.group_add(group, member)
        await layer.group_discard(group, stranger)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, member))["id"] == 1

    async def test_group_of_nobody_takes_messages(self, layer: Any) -> None:
        """group_send() to a group without members does nothing, also for those who join later."""
        group, late = unique("group"), await layer.new_channel()
        await layer.group_send(group, {"type": "x", "id": 1})
        await layer.group_add(group, late)
        assert await is_quiet(layer, late)

    async def test_channel_is_in_several_groups(self, layer: Any) -> None:
        """A channel gets what is sent to each of its groups, also after it left one of them."""
        groups, channel = [unique("group") for _ in range(3)], await layer.new_channel()
        for group in groups:
            await layer.group_add(group, channel)
        await layer.group_discard(groups[0], channel)
        for number, group in enumerate(groups):
            await layer.group_send(group, {"type": "x", "id": number})
        assert {(await receive(layer, channel))["id"] for _ in range(2)} == {1, 2}

    async def test_named_channel_can_be_a_member(self, layer: Any) -> None:
        """A named channel, which several processes read, can be in a group."""
        group, channel = unique("group"), unique()
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, channel))["id"] == 1

    async def test_group_and_channel_of_one_name_are_two(self, layer: Any) -> None:
        """A group and a channel may have the same name without getting each other's messages."""
        name, member = unique(), await layer.new_channel()
        await layer.group_add(name, member)
        await layer.send(name, {"type": "x", "id": 1})
        assert await is_quiet(layer, member)

    async def test_membership_outlives_deliveries(self, layer: Any) -> None:
        """A member that reads its messages stays a member."""
        group, channel = unique("group"), await layer.new_channel()
        await layer.group_add(group, channel)
        for number in range(5):
            await layer.group_send(group, {"type": "x", "id": number})
            assert (await receive(layer, channel))["id"] == number

    async def test_membership_ends_at_group_expiry(
        self, make_layer: MakeLayer, subject: Subject
    ) -> None:
        """Membership ends group_expiry seconds after the last group_add()."""
        layer, group = make_layer(group_expiry=subject.shortest_expiry_s), unique("group")
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        await asyncio.sleep(subject.shortest_expiry_s)

        async def ended() -> bool:
            await layer.group_send(group, {"type": "x", "id": 1})
            return await is_quiet(layer, channel)

        # A layer that counts in whole seconds may be one late.
        assert await eventually(ended, 1.3)

    async def test_group_add_renews_membership(
        self, make_layer: MakeLayer, subject: Subject
    ) -> None:
        """A second group_add() starts group_expiry anew."""
        expiry_s = min(1, 2 * subject.shortest_expiry_s)
        layer, group = make_layer(group_expiry=expiry_s), unique("group")
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        await asyncio.sleep(0.6 * expiry_s)
        await layer.group_add(group, channel)
        await asyncio.sleep(0.6 * expiry_s)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, channel))["id"] == 1


class Flush(LayerRules):
    """flush() empties the layer."""

    async def test_flush_removes_messages(self, layer: Any) -> None:
        """After flush() nothing sent before it is received."""
        local, named = await layer.new_channel(), unique()
        await layer.send(local, {"type": "x"})
        await layer.send(named, {"type": "x"})
        await layer.flush()
        assert await is_quiet(layer, local)
        assert await is_quiet(layer, named)

    async def test_flush_removes_what_was_fetched(self, layer: Any) -> None:
        """The same for a message that a neighbour's receive() brought into the process."""
        fetched, waiting = await layer.new_channel(), await layer.new_channel()
        neighbour = asyncio.create_task(layer.receive(waiting))
        await asyncio.sleep(0.05)
        await layer.send(fetched, {"type": "x"})
        await asyncio.sleep(0.1)
        neighbour.cancel()
        await asyncio.gather(neighbour, return_exceptions=True)
        await layer.flush()
        assert await is_quiet(layer, fetched)

    async def test_flush_removes_groups(self, layer: Any) -> None:
        """After flush() no group has members."""
        group, channel = unique("group"), await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.flush()
        await layer.group_send(group, {"type": "x"})
        assert await is_quiet(layer, channel)

    async def test_layer_works_after_flush(self, layer: Any) -> None:
        """After flush() the layer can be used as if it were new."""
        await layer.send(await layer.new_channel(), {"type": "x"})
        await layer.flush()
        group, channel = unique("group"), await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "x", "id": 1})
        assert (await receive(layer, channel))["id"] == 1
