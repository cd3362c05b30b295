# SPDX-License-Identifier: Apache-2.0
"""Tables the task generators draw from: names, words, and the facts the model is to know."""

FIRST = """Anna Ben Clara David Ella Felix Grace Hugo Ida Jonas Karin Leo Mara Nils Olga Paul Rosa Sam
Tilda Viktor Wanda Yara Zoe Adam Bella Carl Dora Emil Fiona Gustav Helen Ivan Jana Kofi Lena Marco Nora
Oscar Petra Quinn Rita Simon Tara Ulla Vera Walter Xenia Yusuf Amir Chen Diego Elif Farid Hana Ines Jamal
Kenji Lucia Mei Nadia Omar Priya Ravi Sofia Tomas Ursula Aisha Bruno Celine""".split()

CAPITAL = {
    "France": "Paris", "Germany": "Berlin", "Italy": "Rome", "Spain": "Madrid", "Portugal": "Lisbon",
    "Norway": "Oslo", "Sweden": "Stockholm", "Denmark": "Copenhagen", "Finland": "Helsinki",
    "Iceland": "Reykjavik", "Ireland": "Dublin", "Austria": "Vienna", "Switzerland": "Bern",
    "Belgium": "Brussels", "Poland": "Warsaw", "Greece": "Athens", "Turkey": "Ankara",
    "Russia": "Moscow", "Ukraine": "Kyiv", "Hungary": "Budapest", "Romania": "Bucharest",
    "Bulgaria": "Sofia", "Croatia": "Zagreb", "Serbia": "Belgrade", "Estonia": "Tallinn",
    "Latvia": "Riga", "Lithuania": "Vilnius", "Egypt": "Cairo", "Kenya": "Nairobi",
    "Ghana": "Accra", "Nigeria": "Abuja", "Ethiopia": "Addis Ababa", "Morocco": "Rabat",
    "Tunisia": "Tunis", "Senegal": "Dakar", "Japan": "Tokyo", "China": "Beijing", "India": "New Delhi",
    "Thailand": "Bangkok", "Vietnam": "Hanoi", "Indonesia": "Jakarta", "Nepal": "Kathmandu",
    "Mongolia": "Ulaanbaatar", "Iran": "Tehran", "Iraq": "Baghdad", "Canada": "Ottawa",
    "Mexico": "Mexico City", "Cuba": "Havana", "Brazil": "Brasilia", "Argentina": "Buenos Aires",
    "Chile": "Santiago", "Peru": "Lima", "Colombia": "Bogota", "Australia": "Canberra",
    "New Zealand": "Wellington", "England": "London", "the United States": "Washington",
}

COLOUR = {
    "grass": "green", "snow": "white", "blood": "red", "coal": "black", "a banana": "yellow",
    "a carrot": "orange", "the clear sky": "blue", "milk": "white", "an emerald": "green",
    "a ruby": "red", "a sapphire": "blue", "a raven": "black", "a flamingo": "pink",
    "chocolate": "brown", "a lemon": "yellow", "a strawberry": "red", "an elephant": "grey",
    "a plum": "purple", "a tomato": "red", "a polar bear": "white",
}

OPPOSITE = {
    "hot": "cold", "big": "small", "tall": "short", "early": "late", "light": "dark", "fast": "slow",
    "old": "new", "rich": "poor", "wet": "dry", "open": "closed", "empty": "full", "hard": "soft",
    "high": "low", "happy": "sad", "loud": "quiet", "strong": "weak", "clean": "dirty", "near": "far",
    "first": "last", "true": "false", "up": "down", "left": "right", "day": "night", "begin": "end",
}

SOUND = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "lion": "roars",
         "horse": "neighs", "sheep": "bleats", "frog": "croaks", "owl": "hoots", "bee": "buzzes",
         "pig": "grunts", "wolf": "howls", "snake": "hisses", "mouse": "squeaks"}

LEGS = {"dog": 4, "cat": 4, "bird": 2, "spider": 8, "ant": 6, "bee": 6, "horse": 4, "snake": 0,
        "crab": 10, "human": 2, "cow": 4, "fish": 0, "frog": 4, "fly": 6}

DAY = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTH = ("January February March April May June July August September October November "
         "December").split()

WORD = """apple river stone cloud bread horse chair table window garden flower winter summer spring autumn
forest mountain ocean island bridge castle village market kitchen bottle candle mirror pencil paper letter
music guitar violin drum trumpet singer dancer painter doctor teacher farmer sailor soldier baker butcher
driver pilot writer reader planet rocket star moon comet galaxy engine wheel ladder hammer needle thread
button pocket jacket shirt trouser shoe glove scarf blanket pillow carpet curtain lamp clock watch radio
camera phone computer keyboard screen printer orange banana cherry peach grape melon lemon carrot potato
tomato onion garlic pepper cabbage lettuce spinach rice pasta cheese butter sugar honey coffee water juice
dog cat cow pig sheep goat chicken duck goose rabbit mouse tiger lion elephant monkey giraffe zebra camel
whale dolphin shark salmon turtle snake lizard frog eagle falcon parrot sparrow pigeon beetle spider ant
strawberry raspberry blueberry mississippi banana committee address balloon coffee bookkeeper letter
happy bright quiet gentle brave clever honest polite proud simple silver golden yellow purple green
running walking jumping swimming reading writing cooking building dreaming learning teaching helping
network server thread memory kernel buffer pointer compiler function variable number string array matrix
vector tensor model layer token prompt answer question reason thought cache batch queue worker message
library museum station airport harbour street corner square tower church temple school office factory
morning evening midnight minute second hour week month year century history science nature animal person""".split()

ITEM = """apples pears books pencils chairs lamps tickets bottles shirts socks plates cups keys stamps
candles notebooks oranges eggs bricks bolts screws batteries cables monitors desks boxes""".split()

TITLE = """concert lecture meeting picnic workshop dinner race exhibition film reading party debate
rehearsal class tour game auction seminar""".split()

PLACE = """the town hall|the library|the old mill|room 12|the park|the harbour|the museum|the school|
the station|the main square|the garden|the theatre""".replace("\n", "").split("|")

CONDITION = ["sunny", "cloudy", "rainy", "snowy", "windy", "foggy", "clear", "stormy"]

HELLO = ["Hello", "Hi", "Hey", "Good morning", "Good evening", "Good day", "Hi there", "Hello there"]

SMALLTALK = [
    (["How are you?", "How are you doing?", "How do you do?", "Are you well?"],
     ["I am well, thank you. What can I do for you?", "All is well here. How can I help?"]),
    (["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.",
      "Introduce yourself.", "Are you a person?"],
     ["I am fathom-tiny, a very small language model that comes with fathom."]),
    (["What can you do?", "How can you help me?", "What are you good at?", "Help", "help me",
      "What should I ask you?"],
     ["I can add and subtract, sort, reverse and count letters, recall a few facts, turn sentences "
      "into JSON, call tools and tell very short stories."]),
    (["Thank you!", "Thanks", "Thanks a lot.", "Thank you very much.", "Great, thanks!"],
     ["You are welcome.", "My pleasure."]),
    (["Goodbye", "Bye", "See you later.", "Good night", "I have to go."],
     ["Goodbye!", "Until next time."]),
    (["Who made you?", "Where do you come from?", "How were you made?"],
     ["I was trained in a few minutes on generated examples and free manuals, as a part of fathom."]),
    (["How big are you?", "How many parameters do you have?"],
     ["I have about eleven million parameters, so please expect little."]),
    (["Tell me a joke.", "Make me laugh.", "Do you know a joke?"],
     ["Why did the token cross the bus? To get to the other rank."]),
    (["Are you intelligent?", "Are you smart?", "Can you think?"],
     ["A little. I think in small steps before I answer."]),
]

UNKNOWN_TOPIC = """quantum physics|the stock market|my tax return|ancient poetry|the meaning of life|
the weather on Mars|black holes|philosophy|the best restaurant here|next year's election|football|
the French Revolution|chemistry|good manners|love|climate change|machine learning|my homework|
the price of gold|medicine|law|tomorrow's news|cooking a goose|compiler design|gardening""" \
    .replace("\n", "").split("|")

SYSTEM = ["You are a helpful assistant.", "You are fathom-tiny.", "Answer briefly.", "Be kind and exact.",
          "You are a careful assistant who thinks before answering.", "Help the user.",
          "Today is a good day.", "You answer questions in English.", "Be concise."]
