"""What each reviewer looks for, as data: a guide a dimension, and the passes of one reviewer."""

from msgspec import Struct

from lockgate.core.model.gates import Dimension


class Guide(Struct, frozen=True, kw_only=True):
    """What one dimension looks for, what each priority means in it, and what it leaves alone."""

    looks_for: str
    p0: str
    p1: str
    p2: str
    p3: str
    not_yours: str


class Pass(Struct, frozen=True):
    name: str
    looks_for: str


GUIDES = {
    Dimension.CORRECTNESS: Guide(
        looks_for="""\
Whether the change does what was asked, all of it and nothing against it. Follow each path through
the changed code with values in hand: the ordinary one, the empty one, the first and the last, the
one that is twice there. Look at conditions, bounds, signs, units, order of calls, what is returned
and what is forgotten; at callers that the change did not touch but whose assumptions it breaks; at
tests that would also pass without the change, or that state the wrong thing.""",
        p0="wrong results, lost or damaged data, or what was asked is not done.",
        p1="wrong in a case that will occur, a broken caller, new behaviour without a test.",
        p2="wrong only in a case that hardly occurs, a test that proves less than its name says.",
        p3="a case that is right today and rests on luck.",
        not_yours="""\
Speed, attackers, names, layout, and what happens when the surroundings fail.""",
    ),
    Dimension.PERFORMANCE: Guide(
        looks_for="""\
What the change costs as its input grows: work done again in a loop, a query or a request for each
row, reading all where a part would do, copies, locks held over slow calls, caches without a bound,
waiting that could happen side by side. Name the input that makes it slow and how the cost grows.
An estimate with numbers counts; "this could be faster" does not.""",
        p0="it makes the product unusable or exhausts a machine at a size that occurs today.",
        p1="cost that grows faster than the input on a path that is used often, a leak.",
        p2="a waste that can be measured, on a path that is used seldom.",
        p3="a cheaper way that costs the reader nothing.",
        not_yours="""\
Whether the result is right, how the code looks, and speed where nobody waits for it.""",
    ),
    Dimension.SECURITY: Guide(
        looks_for="""\
What somebody with bad intent can do with the change: input from outside that reaches a query, a
command, a path, a template, a page or a deserialiser; checks of who one is and what one may that
are missing, too late or in the wrong place; secrets in code, logs, messages or addresses; weak or
home-made cryptography and chance; new dependencies, downloads and permissions; races between a
check and its use. For each finding say who the attacker is, what they send, and what they gain.""",
        p0="somebody without the right to can read, change or run what they must not.",
        p1="an attack that needs one more condition, a check or a bound that is missing.",
        p2="a second line of defence that is missing, a message that tells too much.",
        p3="a safer habit at no cost.",
        not_yours="""\
Bugs that nobody can gain by, speed, style, and weaknesses that were there before and that the
change neither uses nor worsens.""",
    ),
    Dimension.ELEGANCE: Guide(
        looks_for="""\
Whether this is the simplest design that does the job and fits the code it joins: responsibilities
in the right place, a thing said once, types that make wrong states impossible to write, names that
tell the truth, interfaces that ask for no more than they need. Ask what could be deleted, and
whether the repository already has what was written again.""",
        p0="a design that has to be undone before anything can be built on it.",
        p1="a second way of doing what the code does already, a bypassed layer, a name that lies.",
        p2="more parts than the job needs, a rule written in two places.",
        p3="a shorter or clearer form.",
        not_yours="""\
Formatting, taste without a consequence, and rewrites of code that the change does not touch.""",
    ),
    Dimension.RESILIENCE: Guide(
        looks_for="""\
What happens when the surroundings fail: a call that times out or answers half, a full disk, a file
that is gone, a process killed between two steps, the same message twice, two of them at once. Look
for errors that are swallowed or lose their cause, retries without an end or of what must not be
repeated, waits without a limit, resources that are not given back, state left half changed, and a
restart that cannot pick up where it was.""",
        p0="a failure that is likely loses or damages data, or cannot be recovered from.",
        p1="a failure that is likely hangs, crashes or leaks; an error that nobody would ever see.",
        p2="an unlikely failure ends badly, a message from which nobody could find the cause.",
        p3="a failure that could be borne more gracefully.",
        not_yours="""\
Wrong results where nothing fails, attackers, speed, and guards against what cannot happen.""",
    ),
    Dimension.STYLE: Guide(
        looks_for="""\
Whether the change reads like the code around it and keeps the written rules of the repository
(its CONTRIBUTING, linters' settings, neighbouring files): naming, layout, order, comments that say
why, messages and documents in the repository's own words, nothing left over from the work such as
dead code, debug output or notes to oneself.""",
        p0="nothing of style is P0.",
        p1="a written rule of the repository is broken; name the rule and where it stands.",
        p2="it departs from what the files around it do.",
        p3="a wording or an order that would read better.",
        not_yours="""\
What a formatter or a linter of the repository already reports, your own preferences, and what the
code does.""",
    ),
    Dimension.SMELLS: Guide(
        looks_for="""\
Signs of trouble to come: functions and files that grew too long, deep nesting, flags that switch
what a function is, long lists of arguments, the same lines copied, data that always travels
together without a name, one change that had to touch many places, code that reaches through others,
names from one time and behaviour from another, tests that repeat the code instead of checking it.
Say what will go wrong because of it.""",
        p0="nothing that only smells is P0.",
        p1="it will cause a bug at the next ordinary change; say which change and which bug.",
        p2="it makes the next change dearer than it need be.",
        p3="a small thing to tidy while one is there.",
        not_yours="""\
Bugs that are there today, formatting, and smells in code that the change does not touch.""",
    ),
    Dimension.GENERAL: Guide(
        looks_for="""\
Whether the change should land as it is: it does what was asked, it is right in the cases that
occur, it opens no hole, it bears the failures that are likely, its tests would notice if it broke,
and the next reader can follow it. Start with what would hurt most.""",
        p0="it must not land: wrong, unsafe, or not what was asked.",
        p1="it should not land before this is mended.",
        p2="worth mending, and it can wait.",
        p3="a thought.",
        not_yours="""\
What a formatter or a linter reports, taste, and code that the change does not touch.""",
    ),
}

PASSES = (
    Pass(
        "draft",
        """\
Read the whole change once, fast, for its shape: what it is meant to do, whether that is what was
asked, what is missing altogether, what does not belong, whether its design holds. Report what one
sees from afar.""",
    ),
    Pass(
        "correctness",
        """\
Read it line by line and follow the values: conditions, bounds, order, what is returned, what the
callers expect, what the tests really prove. Report what gives a wrong result.""",
    ),
    Pass(
        "clarity",
        """\
Read it as somebody who has to change it in a year: names, structure, rules said twice, surprises,
comments and documents that no longer tell the truth. Report what would mislead.""",
    ),
    Pass(
        "edge cases",
        """\
Break it: empty, huge, twice, at once, out of order, cut off, denied, in another zone, language or
encoding, killed half-way, hostile. Report each input or event that ends badly, and how.""",
    ),
    Pass(
        "excellence",
        """\
Ask what stands between this change and one that you would show as an example. Report what is left,
blocking only where it truly must not land so.""",
    ),
)
