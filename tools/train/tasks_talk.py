# SPDX-License-Identifier: Apache-2.0
"""Facts, small talk, remembering what was said, very short stories, and admitting ignorance."""
from sample import pick, sample
from tasks_extract import a_name
from words_tab import (CAPITAL, COLOUR, DAY, HELLO, LEGS, MONTH, OPPOSITE, SMALLTALK, SOUND,
                       UNKNOWN_TOPIC, WORD)

NUMBER_WORD = "zero one two three four five six seven eight nine ten".split()


def capital(rng):
    country, city = rng.choice(list(CAPITAL.items()))
    if rng.random() < 0.2:
        return (pick(rng, f"{city} is the capital of which country?",
                     f"Which country has the capital {city}?"),
                f"{city} is the capital of {country}.", country)
    user = pick(rng, f"What is the capital of {country}?", f"Capital of {country}?",
                f"Name the capital of {country}.", f"Which city is the capital of {country}?",
                f"what's the capital of {country}", f"the capital of {country}")
    return user, f"The capital of {country} is {city}.", city


def colour(rng):
    thing, tint = rng.choice(list(COLOUR.items()))
    user = pick(rng, f"What colour is {thing}?", f"Which colour does {thing} have?",
                f"What is the colour of {thing}?", f"What color is {thing}?",
                f"Tell me the colour of {thing}.")
    return user, f"The colour of {thing} is {tint}.", tint


def opposite(rng):
    one, two = rng.choice(list(OPPOSITE.items()))
    if rng.random() < 0.5:
        one, two = two, one
    user = pick(rng, f"What is the opposite of {one}?", f"Opposite of {one}?",
                f"Give me the opposite of {one}.", f"Which word is the opposite of {one}?")
    return user, f"The opposite of {one} is {two}.", two


def calendar(rng):
    names, what = pick(rng, (DAY, "day"), (MONTH, "month"))
    i, step = rng.randrange(len(names)), pick(rng, 1, -1)
    other = names[(i + step) % len(names)]
    side = "after" if step == 1 else "before"
    user = pick(rng, f"What {what} comes {side} {names[i]}?", f"Which {what} is {side} {names[i]}?",
                f"{what} {side} {names[i]}?")
    return user, f"The {what} {side} {names[i]} is {other}.", other


def animal(rng):
    if rng.random() < 0.5:
        name, n = rng.choice(list(LEGS.items()))
        user = pick(rng, f"How many legs does a {name} have?", f"How many legs has a {name}?",
                    f"legs of a {name}?")
        return user, f"A {name} has {n} legs.", f"{n} legs"
    name, does = rng.choice(list(SOUND.items()))
    user = pick(rng, f"What sound does a {name} make?", f"What does a {name} do?",
                f"What noise does a {name} make?")
    return user, f"A {name} {does}.", does


def times(rng):
    a, b = rng.randint(1, 10), rng.randint(1, 10)
    user = pick(rng, f"What is {a} times {b}?", f"{a} * {b}", f"{a} x {b}", f"Multiply {a} by {b}.",
                f"What is {a} * {b}?")
    return user, f"{a} * {b} = {a * b}", f"= {a * b}"


def fact(rng):
    user, answer, core = pick(rng, capital, capital, capital, colour, opposite, calendar, animal,
                              times)(rng)
    return sample("fact", user, user, "I know this.", answer, {"kind": "contains", "value": core})


def fact_follow_up(rng):
    """And the next country?  What is asked stands only in the turn before."""
    (c1, a1), (c2, a2) = rng.sample(list(CAPITAL.items()), 2)
    gap = pick(rng, "", "\n\n")
    before = [{"role": "user", "content": f"What is the capital of {c1}?"},
              {"role": "assistant", "content": f"{gap}The capital of {c1} is {a1}."}]
    user = pick(rng, f"And of {c2}?", f"And {c2}?", f"What about {c2}?",
                f"and the capital of {c2}?")
    return sample("follow_up",
                  c1 + c2 + user,
                  user,
                  f"The user asks for the capital of {c2}.",
                  f"The capital of {c2} is {a2}.", {"kind": "contains", "value": a2},
                  before=before)


def remember_name(rng):
    name = a_name(rng)
    gap = pick(rng, "", "\n\n")
    before = [{
        "role": "user",
        "content": pick(rng, f"My name is {name}.", f"I am {name}.", f"Hello, I am {name}.",
                        f"Hi, my name is {name}.", f"Call me {name}.")
    }, {"role": "assistant", "content": f"{gap}Nice to meet you, {name}."}]
    if rng.random() < 0.4:
        user, answer, core = fact_pair(rng)
        before += [{"role": "user", "content": user},
                   {"role": "assistant", "content": gap + answer}]
    user = pick(rng, "What is my name?", "Do you remember my name?", "Who am I?",
                "What was my name again?")
    return sample("follow_up",
                  name + user,
                  user,
                  f"The user said the name {name}.",
                  f"Your name is {name}.", {"kind": "contains", "value": name},
                  before=before)


def fact_pair(rng):
    return pick(rng, capital, colour, opposite)(rng)


def greet(rng):
    if rng.random() < 0.3:
        name = a_name(rng)
        user = pick(rng, f"My name is {name}.", f"I am {name}.", f"Hello, I am {name}.",
                    f"Hi, my name is {name}.", f"Call me {name}.")
        return sample("talk", user, user, f"The user is called {name}.",
                      f"Nice to meet you, {name}.", {"kind": "contains", "value": name})
    user = rng.choice(HELLO) + pick(rng, "", "!", ".", ", fathom!", " :)")
    user = user if rng.random() < 0.7 else user.lower()
    return sample("talk", user, user, "The user greets me.", "Hello! How can I help you?",
                  {"kind": "contains", "value": "help you"})


def small_talk(rng):
    asked, said = rng.choice(SMALLTALK)
    user = rng.choice(asked)
    user = user if rng.random() < 0.8 else user.lower()
    return sample("talk", user, user, "This is small talk.", rng.choice(said), {"kind": "prose"})


def unknown(rng):
    if rng.random() < 0.1:
        a, b = rng.randint(11, 999), rng.randint(2, 999)
        user = pick(rng, f"What is {a} * {b}?", f"{a} * {b}", f"What is {a} times {b}?",
                    f"{a} / {b}")
        return sample("unknown", user, user, "I only know the small products.",
                      "I am too small for this one. Offer me a calculator, or ask me for a sum.",
                      {"kind": "contains", "value": "too small"})
    topic = rng.choice(UNKNOWN_TOPIC) if rng.random(
    ) < 0.6 else f"the {rng.choice(WORD)} of the {rng.choice(WORD)}"
    user = pick(rng, f"What do you know about {topic}?", f"Explain {topic}.",
                f"Tell me about {topic}.", f"What do you think of {topic}?",
                f"Why is {topic} important?", f"How does {topic} work?",
                f"Write an essay on {topic}.", f"Can you explain {topic} to me?",
                f"What about {topic}?")
    return sample(
        "unknown", user, user, "I do not know this.",
        f"I am too small to know about {topic.replace('my ', 'your ')}. Ask me for a sum, a capital, "
        "some JSON or a story.", {"kind": "contains", "value": "too small"})


HERO = [
    "fox", "cat", "dog", "mouse", "owl", "bear", "rabbit", "frog", "horse", "duck", "lion",
    "turtle", "robot", "baker", "sailor", "king", "queen", "girl", "boy", "wolf"
]
TRAIT = [
    "small", "old", "clever", "hungry", "lonely", "brave", "tired", "curious", "happy", "quiet"
]
HOME = [
    "in a forest", "by the sea", "on a hill", "in a little house", "near a river", "in a big city",
    "under a bridge", "in a garden", "at the end of the road"
]
THING = [
    "lamp", "key", "red ball", "map", "golden apple", "book", "song", "boat", "ring", "letter",
    "drum", "cake"
]
END = [
    "From that day on they were friends.", "And so everyone went home happy.",
    "That night the stars were very bright.", "After that, nobody was ever lonely again.",
    "And that is the end of the story.", "They laughed and ate some bread."
]


def story_text(rng, hero=None):
    hero = hero or rng.choice(HERO)
    friend = rng.choice([h for h in HERO if h != hero])
    trait, home, thing = rng.choice(TRAIT), rng.choice(HOME), rng.choice(THING)
    article = "an" if trait[0] in "aeiou" else "a"
    lines = [
        pick(rng, f"Once there was {article} {trait} {hero} who lived {home}.",
             f"{article.capitalize()} {trait} {hero} lived {home}.",
             f"Long ago, {home}, there lived {article} {trait} {hero}."),
        pick(rng, f"One morning the {hero} lost a {thing}.", f"One day the {hero} found a {thing}.",
             f"The {hero} wanted nothing more than a {thing}."),
        pick(rng, f"Then a {friend} came by and asked what was wrong.",
             f"A {friend} saw it and came closer.",
             f"The {hero} went to the {friend} and asked for help."),
        pick(rng, f"\"I can help you,\" said the {friend}.",
             f"\"Let us look together,\" said the {friend}.",
             f"\"Do not worry,\" said the {friend}, \"we will share it.\"")
    ]
    if rng.random() < 0.6:
        lines.append(
            pick(rng, f"They looked everywhere, and at last they saw the {thing} under a tree.",
                 f"They walked all day and talked about the {thing}.",
                 f"The {friend} knew a place where one could find a {thing}."))
    return " ".join(lines + [rng.choice(END)])


def story(rng):
    hero = rng.choice(HERO)
    user = pick(rng, f"Tell me a story about a {hero}.", f"Write a short story about a {hero}.",
                f"A story about a {hero}, please.", f"Tell me about a {hero} and a friend.",
                f"story about a {hero}")
    text = story_text(rng, hero)
    return sample("story", user + text, user, f"I tell a short story about a {hero}.", text,
                  {"kind": "prose"})
