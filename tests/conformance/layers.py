"""The four layers that this project runs on, and which rules they are known to break.

The reasons are this suite's findings on the versions pinned in requirements.txt; each is strict: a
release that mends one turns the run red until the reason is taken out.
"""

import pytest

from .subject import Subject

PER_NAME = "capacity is of each full channel name"
NOT_ATTRIBUTES = "raises channels.exceptions.*, which are not attributes of the layer"
NO_CAPACITY = "its queues have no bounds"
NO_EXPIRY = "no message and no membership expires"
SUBSCRIBED = "a named channel exists only for those who already wait in receive()"
UNCHECKED = "checks neither names nor messages"
TO_EVERY_READER = "every process that reads a named channel gets every message"
TAKES_LIVE_MESSAGES = (
    "the recovery of one reader's messages in flight takes the live ones of others"
)
QUEUE_GOES = "a receive() that is cancelled throws away what its queue holds"
CANCELLED_IN_FLIGHT = "a message that Redis has popped is lost when its receive() is cancelled"

INMEMORY = Subject(
    "inmemory",
    "channels.layers.InMemoryChannelLayer",
    shortest_expiry_s=0.3,
    crosses_processes=False,
    breaks={
        "test_channel_full_is_an_attribute": NOT_ATTRIBUTES,
        "test_message_too_large_is_an_attribute": NOT_ATTRIBUTES,
        "test_tuples_arrive_as_lists": "deep-copies a message, and a tuple stays a tuple",
        "test_channel_capacity_matches_patterns": "channel_capacity as a dict raises ValueError",
        "test_capacity_is_shared_over_the_prefix": PER_NAME,
        "test_expired_messages_make_room": "send() does not look for expired messages",
        "test_async_to_sync_sends": "its queues belong to one event loop: nothing wakes a waiter",
        "test_two_loops_receive": "its queues belong to one event loop: nothing wakes a waiter",
    },
)

IPC = Subject(
    "ipc",
    "channels_ipc.IPCChannelLayer",
    shortest_expiry_s=0.3,
    breaks={
        "test_capacity_is_shared_over_the_prefix": (
            f"{PER_NAME}, so that one stuck consumer does not block its process: deliberate"
        ),
    },
)

REDIS = Subject(
    "redis",
    "channels_redis.core.RedisChannelLayer",
    marks=(pytest.mark.redis,),
    breaks={
        "test_channel_full_is_an_attribute": NOT_ATTRIBUTES,
        "test_message_too_large_is_an_attribute": NOT_ATTRIBUTES,
        "test_group_members_do_not_share_a_message": "members in one process get one dict",
        "test_cancelled_receive_loses_nothing": CANCELLED_IN_FLIGHT,
        "test_cancelled_receive_of_a_named_channel_loses_nothing": CANCELLED_IN_FLIGHT,
        "test_accepted_messages_are_not_dropped": (
            "a neighbour's receive() moves them into a buffer that drops its oldest"
        ),
        "test_expiry_is_of_each_message": "expiry is looked at by send(), and not by receive()",
        "test_expiry_below_a_second_works": "expiry is cut to whole seconds, and 0 deletes at once",
        "test_flush_removes_what_was_fetched": "flush() leaves what a process has fetched already",
        "test_two_loops_receive": "raises RuntimeError: one receiving loop for a layer",
        "test_two_processes_share_a_channel": TAKES_LIVE_MESSAGES,
        "test_four_processes_share_a_channel": TAKES_LIVE_MESSAGES,
        "test_both_sides_of_a_fork_are_served": "parent and child keep one client prefix",
        "test_killed_consumers_double_nothing": (
            "a message received just before the kill is taken for one in flight, and given again"
        ),
    },
)

REDIS_PUBSUB = Subject(
    "redis_pubsub",
    "channels_redis.pubsub.RedisPubSubChannelLayer",
    shortest_expiry_s=0.3,
    marks=(pytest.mark.redis,),
    breaks={
        "test_channel_full_is_an_attribute": NOT_ATTRIBUTES,
        "test_message_too_large_is_an_attribute": NOT_ATTRIBUTES,
        "test_group_expiry_is_an_attribute": NO_EXPIRY,
        "test_new_channel_is_process_specific_and_unique": 'the names have no "!"',
        "test_every_valid_name_is_a_channel_of_its_own": SUBSCRIBED,
        "test_invalid_names_are_refused": UNCHECKED,
        "test_what_is_not_a_dict_is_refused": UNCHECKED,
        "test_message_waits_for_its_reader": SUBSCRIBED,
        "test_full_process_specific_channel_raises": NO_CAPACITY,
        "test_full_named_channel_raises": NO_CAPACITY,
        "test_channel_capacity_matches_patterns": NO_CAPACITY,
        "test_capacity_is_shared_over_the_prefix": NO_CAPACITY,
        "test_unread_message_expires": NO_EXPIRY,
        "test_expiry_is_of_each_message": NO_EXPIRY,
        "test_expiry_below_a_second_works": NO_EXPIRY,
        "test_expired_messages_make_room": SUBSCRIBED,
        "test_named_channel_can_be_a_member": SUBSCRIBED,
        "test_membership_ends_at_group_expiry": NO_EXPIRY,
        "test_two_processes_share_a_channel": TO_EVERY_READER,
        "test_four_processes_share_a_channel": TO_EVERY_READER,
        "test_message_outlives_its_sender": SUBSCRIBED,
        "test_foreign_channel_can_be_added_and_discarded": "group_add() takes own channels only",
        "test_flush_reaches_every_process": "flush() empties its own process only",
        "test_idle_process_sleeps": "looks for messages ten times a second",
        "test_stalled_process_gives_channel_full": NO_CAPACITY,
        "test_flush_reaches_a_stalled_process": "flush() empties its own process only",
        "test_killed_consumer_takes_nothing_along": SUBSCRIBED,
        "test_cancelled_receive_loses_nothing": QUEUE_GOES,
        "test_cancelled_receive_of_a_named_channel_loses_nothing": QUEUE_GOES,
    },
)

SUBJECTS = (IPC, REDIS, REDIS_PUBSUB, INMEMORY)
