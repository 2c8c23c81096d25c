from channels_ipc.groups import Memberships


def test_membership_lasts_until_discarded():
    table = Memberships()
    table.add("g", "a", 10.0)
    table.add("g", "b", 11.0)
    table.discard("g", "a")
    assert table.members("g") == {"b": 11.0}
    assert table.groups_of("a") == ()


def test_joining_again_renews_the_membership():
    table = Memberships()
    table.add("g", "a", 10.0)
    table.add("g", "a", 20.0)
    assert table.members("g") == {"a": 20.0}


def test_nothing_is_kept_of_empty_groups():
    table = Memberships()
    table.add("g", "a", 10.0)
    table.discard("g", "a")
    table.discard("g", "a")
    table.discard("other", "b")
    assert table.groups() == ()
    assert vars(table) == vars(Memberships())
