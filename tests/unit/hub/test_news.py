"""What an open page is told of: that something changed, and never what."""

from __future__ import annotations

from fleet_hub.service.news import News


def test_each_change_has_another_number_and_each_reader_hears_of_it() -> None:
    """A page that heard nothing compares the number of now with its own."""
    news, heard = News(), []

    def reader() -> None:
        heard.append(news.number)

    before = news.number
    news.join(reader)
    news.note()
    news.note()
    news.leave(reader)
    news.note()
    assert len(heard) == 2
    assert len({before, *heard, news.number}) == 4


def test_a_reader_that_leaves_while_it_is_told_harms_nobody() -> None:
    """Its page was closed by that very word."""
    news, heard = News(), []

    def leaving() -> None:
        news.leave(leaving)

    def staying() -> None:
        heard.append(news.number)

    for reader in (leaving, staying):
        news.join(reader)
    news.note()
    news.note()
    assert len(heard) == 2


def test_a_controller_that_is_started_anew_has_no_number_of_an_earlier_one() -> None:
    """Otherwise a page of before could look as if it were up to date."""
    assert News().number != News().number
