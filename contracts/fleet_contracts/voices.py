"""What is said instead to somebody who looks at another one's server.

A text that speaks to its owner says "you".  An admin who reads it is not meant, so each
such text has a second form here; a test finds the ones that have none.
"""

from __future__ import annotations

from typing import Final


OF_ANOTHER: Final[dict[str, str]] = {
    # the timeline
    "You are next.": "It is next.",
    "{count} ahead of you.": "{count} ahead of it.",
    "you": "{owner}",
    "another of your servers": "another of its user's servers",
    "Your place is kept.": "Its place is kept.",
    # the pages
    "Your server": "Server",
    "Your server “{server}”": "Server “{server}”",
    "Your place in the line is kept": "Its place in the line is kept",
    "Your turn has come": "Its turn has come",
    "Your turn has come: the server is about to start on {machine}.": (
        "Its turn has come: the server is about to start on {machine}."
    ),
    "Your server did not start": "The server did not start",
    "Your server did not start.": "The server did not start.",
    "Your server is ready.": "The server is ready.",
    "Your server did not start within {time}, so it was given up.": (
        "The server did not start within {time}, so it was given up."
    ),
    "Your place in the line is kept; your server starts when its turn comes.": (
        "Its place in the line is kept; the server starts when its turn comes."
    ),
    "Your last server has not ended yet: its machine has not confirmed it. "
    "Try again in a minute.": (
        "The last server has not ended yet: its machine has not confirmed it. "
        "Try again in a minute."
    ),
    "The fleet's controller has not answered for {time}. If you had a place in the "
    "line, it is kept; try again in a minute.": (
        "The fleet's controller has not answered for {time}. If there was a place in "
        "the line, it is kept; try again in a minute."
    ),
    (
        "The fleet's controller does not answer, so nobody can say how far your server "
        "is. If it had a place in the line, the place is kept. This page tries again by "
        "itself."
    ): (
        "The fleet's controller does not answer, so nobody can say how far the server "
        "is. If it had a place in the line, the place is kept. This page tries again by "
        "itself."
    ),
    (
        "You may close this page. Your server starts by itself when its turn comes, and "
        "this page leads to it."
    ): "The server starts by itself when its turn comes, and this page leads to it.",
    "Closing this page is safe: your place is kept.": (
        "Closing this page is safe: its place is kept."
    ),
    "Starting your server": "Starting the server",
    "Starting your server “{server}”": "Starting the server “{server}”",
    "This ends the start. A place in the line is lost; your files stay.": (
        "This ends the start. A place in the line is lost; its user's files stay."
    ),
    "Go on waiting": "Let it go on",
    "None of these profiles can be started by you; each says why.": (
        "None of these profiles can be started by this user; each says why."
    ),
    "Not for you": "Not for this user",
    "Not beside your files": "Not beside the user's files",
    "begin with an empty folder[ on {machine}] (choose it below); your files stay": (
        "begin with an empty folder[ on {machine}] (choose it below); the files stay"
    ),
    "begin with a copy of your files[ on {machine}] (choose it below)": (
        "begin with a copy of the files[ on {machine}] (choose it below)"
    ),
    "Your files cannot be copied: {why}": "The files cannot be copied: {why}",
    "keep {class}[ on {machine}], beside your files": (
        "keep {class}[ on {machine}], beside the files"
    ),
    "Where my choice cannot run beside my files": (
        "Where the choice cannot run beside the user's files"
    ),
    (
        "Begin with an empty folder where my choice can run. My files stay where they "
        "are."
    ): (
        "Begin with an empty folder where the choice can run. The user's files stay "
        "where they are."
    ),
    "Copy my files to where my choice can run. They also stay where they are.": (
        "Copy the user's files to where the choice can run. They also stay where they "
        "are."
    ),
    "Copying your files": "Copying the files",
    # why
    "this is not offered to you[: {subject}]": (
        "this is not offered to its user[: {subject}]"
    ),
    "the machine's owner[, {subject},] does not lend it to you": (
        "the machine's owner[, {subject},] does not lend it to this user"
    ),
    "your own quota is in use[: {requested} asked for, {left} free]": (
        "the user's own quota is in use[: {requested} asked for, {left} free]"
    ),
    "your files are on another machine": "its user's files are on another machine",
    (
        "the machine with your files[, {subject},] cannot send them now"
        "[; it is waited for at most {requested}]"
    ): (
        "the machine with its user's files[, {subject},] cannot send them now"
        "[; it is waited for at most {requested}]"
    ),
    "your files could not be copied": "its user's files could not be copied",
    "copying your files took too long[: more than {requested}]": (
        "copying its user's files took too long[: more than {requested}]"
    ),
    "your files are more than may be copied": (
        "its user's files are more than may be copied"
    ),
    "your files are copied before the start, and stay there": (
        "its user's files are copied before the start, and stay there"
    ),
    "your files stay as they were; this server has a copy of them": (
        "its user's files stay as they were; this server has a copy of them"
    ),
    "you left the line": "it left the line",
    "it is not your turn yet, and your place in the line is kept": (
        "it is not its turn yet, and its place in the line is kept"
    ),
    # what would help
    "It is asked again by itself; your files stay there.": (
        "It is asked again by itself; the files stay there."
    ),
    "Remove what you do not need, or keep the old class.": (
        "Its user can remove what is not needed, or keep the old class."
    ),
    "Leave the line if you do not want that; your files stay where they are.": (
        "Its user can leave the line instead; the files stay where they are."
    ),
    (
        "Choose a profile that runs in containers or on a cluster, or enrol a machine "
        "of your own."
    ): (
        "A profile that runs in containers or on a cluster would do, or a machine of "
        "the user's own."
    ),
    "Ask an admin to add you or one of your groups to its audience.": (
        "An admin can add the user or one of their groups to its audience."
    ),
    "Stop one of your servers.": "It waits until one of the user's servers ends.",
    "It is tried again by itself; your place is kept.": (
        "It is tried again by itself; its place is kept."
    ),
    "Start again; your files are kept.": "It can be started again; files are kept.",
    "Start again with a class that has more memory; your files are kept.": (
        "It can be started again with a class that has more memory; files are kept."
    ),
    "Start again whenever you like; your files are kept.": (
        "It can be started again at any time; files are kept."
    ),
    "Ask the admin, or start again; your files are kept.": (
        "It can be started again; files are kept."
    ),
    "Ask again whenever you like.": "It can be asked for again at any time.",
    "Ask again when you are there.": "It can be asked for again at any time.",
    "You can close this page: the server starts when it is your turn.": (
        "The server starts when it is its turn."
    ),
    "Stop the server when you are done.": "The server ends when it is stopped.",
}
