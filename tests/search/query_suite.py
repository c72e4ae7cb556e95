"""Pages in five languages, and 60 queries with the pages that must match, the best first.

``PAGES``: name -> (language, title, content). ``QUERIES``: query -> names that must match in this order. Other pages
may follow; those after ``|`` must not come before them. ``a/b``: in either order.
"""

from tests.indexer.pages import doc

_FILLER = {
    "en": "The first chapter tells where everything is, and the last one how it was made by many hands over the years.",
    "zh": "这一章介绍历史，下一章介绍现状，最后一章谈谈以后的事情。",
    "zh-TW": "這一章介紹歷史，下一章介紹現狀，最後一章談談以後的事情。",
    "ja": "この章では歴史について述べ、次の章では現状について述べる。",
    "de": "Das erste Kapitel erzählt, wo alles liegt, und das letzte, wie es im Lauf vieler Jahre entstand.",
}

PAGES = {
    # English
    "manager": (
        "en",
        "Package manager",
        "A package manager installs software. The package manager knows what a package needs.",
    ),
    "rights": (
        "en",
        "Managing Rights",
        "Managing rights of users is for managers. Each package of rights is managed apart.",
    ),
    "packages": ("en", "Packages", "A list of packages that can be had. Ask your administrator, not the manager."),
    "search": ("en", "Search engine", "A search engine finds pages. An engine for searching ranks what it finds."),
    "engine": ("en", "Steam engine", "The steam engine moved the world. In search of coal, people dug deep."),
    "crawler": ("en", "Web crawler", "A web crawler fetches pages of the web and follows their links."),
    "spider": ("en", "Spiders", "A spider makes a web. Crawlers such as beetles are caught in it."),
    "python": ("en", "Python tutorial", "This tutorial teaches the language Python: lists, functions, classes."),
    "snake": ("en", "Pythons in the zoo", "Pythons are snakes. A tutorial on feeding a python is given on Sundays."),
    "robots": ("en", "Robots exclusion", "The file robots.txt tells crawlers what they may fetch."),
    "who": ("en", "The Who", "The Who are a band from London. The band played loud."),
    "band": ("en", "Rubber bands", "A rubber band holds things together. Who needs one?"),
    "climate": (
        "en",
        "Climate change report",
        "The report on climate change: what warms the climate, how the change can be slowed.",
    ),
    "weather": (
        "en",
        "Weather report",
        "The report says that the weather will change. The climate of the south is mild.",
    ),
    "cafe": ("en", "Café de Flore", "A café in Paris with a naïve painting."),
    "running": ("en", "Running shoes", "Shoes for running: runners run in them."),
    "database": (
        "en",
        "Database index",
        "An index of a database makes queries fast. A database without index is slow.",
    ),
    "stock": ("en", "Stock index", "The stock index fell. Bankers keep a database of stocks."),
    # simplified Chinese
    "ruanjian": ("zh", "自由软件", "自由软件可以自由使用和修改。软件的源代码是公开的。"),
    "yingjian": ("zh", "电脑硬件", "硬件包括主板和内存。软件在硬件上运行，自由选择。"),
    "hulianwang": ("zh", "互联网历史", "互联网从阿帕网开始，互联网连接了世界。"),
    "boke": ("zh", "写博客", "博客是个人写的网页。写博客的人很多。"),
    "aoyun": ("zh", "北京奥运会", "北京奥运会在鸟巢开幕，北京奥运会的吉祥物是福娃。"),
    "panama": ("zh", "巴拿马", "巴拿马运河连接两个大洋，会议在北边举行。"),
    "shujuku": ("zh", "数据库索引", "数据库索引让查询更快。没有索引的数据库很慢。"),
    "paris": ("zh", "巴黎旅游", "巴黎的博物馆很多，旅游的人喜欢铁塔。"),
    "jingrong": ("zh", "金融危机", "金融危机席卷各国，银行倒闭。"),
    "yinhang": ("zh", "银行", "银行提供金融服务，没有危机。"),
    # traditional Chinese
    "shujuku-tw": ("zh-TW", "資料庫設計", "資料庫設計要先想好欄位。資料庫可以放在網路上。"),
    "wanglu-tw": ("zh-TW", "網際網路安全", "網際網路安全很重要，密碼要夠長。"),
    "ruanti-tw": ("zh-TW", "軟體開發", "軟體開發需要測試。好的軟體容易修改。"),
    "taibei-tw": ("zh-TW", "臺北美食", "臺北的夜市有很多美食，例如牛肉麵。"),
    "buluoge-tw": ("zh-TW", "部落格教學", "部落格教學：怎樣開始寫部落格。"),
    "dongwu-tw": ("zh-TW", "軟體動物", "軟體動物沒有脊椎，例如蝸牛。"),
    # Japanese
    "kensaku": ("ja", "検索エンジンの仕組み", "検索エンジンはページを集めて順位をつける。"),
    "jidousha": ("ja", "自動車のエンジン", "自動車のエンジンを検査する。部品を検索する。"),
    "tokyo": ("ja", "東京都の観光", "東京都には観光の名所が多い。東京タワーが有名だ。"),
    "kyoto": ("ja", "京都の寺", "京都には古い寺が多い。観光客が東京から来る。"),
    "deta": ("ja", "データベース入門", "データベースの使い方を学ぶ。索引を作ると速くなる。"),
    "ryouri": ("ja", "日本料理", "日本料理は魚と米を使う。だしが大切である。"),
    # German
    "haus": ("de", "Häuser bauen", "Wer Häuser baut, braucht einen Plan. Das Haus steht auf festem Grund."),
    "maus": ("de", "Computermaus", "Die Maus liegt neben der Tastatur im Haus."),
    "suche": ("de", "Suchmaschinen", "Suchmaschinen finden Seiten. Eine Suchmaschine ordnet die Treffer."),
    "maschine": ("de", "Nähmaschine", "Die Maschine näht. Wer eine sucht, findet gebrauchte Maschinen im Laden."),
    "strasse": ("de", "Straßen in München", "Die Straßen der Stadt München sind breit."),
    "buecher": ("de", "Bücher über Gärten", "Bücher über den Garten: Gärten im Frühling, Gärtner bei der Arbeit."),
    "kfz": ("de", "Haftpflichtversicherung", "Eine Autoversicherung zahlt nach Unfällen."),
    "csharp": ("en", "C# tutorial", "Classes in C# compile to .NET assemblies."),
    "cpp": ("en", "C++ tutorial", "Templates in C++20 expand during compilation."),
    "phone": ("en", "iPhone15 manual", "Connect by Wi-Fi."),
    "garten": ("de", "Gartenbau", "Der Gärtner liest Bücher nicht gern."),
}

QUERIES = {
    # parts of compounds, names with signs, other spellings
    "Haftpflicht": "kfz",
    "Auto Versicherung": "kfz",
    "C#": "csharp",
    "C++": "cpp",
    ".NET": "csharp",
    "iphone 15": "phone",
    "wifi": "phone",
    # English: several words, forms of words, stopwords, fields, quotes
    "package manager": "manager rights",
    "packages managers": "manager rights",
    '"package manager"': "manager | rights",
    "search engine": "search engine",
    "engine search": "search engine",
    "search engines ranking pages": "search",
    "web crawler": "crawler spider",
    "crawlers of the web": "crawler",
    "python tutorial": "python snake",
    "tutorial python lists": "python | rights",
    "pythons": "python snake",
    "robots.txt": "robots | crawler",
    "the who": "who",
    "who band london": "who | python",
    "climate change": "climate weather",
    "climate change report": "climate weather",
    "change of climate": "climate weather",
    "cafe naive": "cafe | who",
    "ＣＡＦÉ": "cafe",
    "runs": "running | who",
    "database index": "database stock",
    "stock index": "stock | database",
    "index -stock": "database | stock",
    "title:engine": "search/engine | jidousha",
    "search engine lang:en": "search engine | kensaku",
    "run OR stock": "running stock | who",
    # simplified Chinese, which matches the traditional
    "自由软件": "ruanjian",
    "软件": "ruanti-tw ruanjian yingjian | dongwu-tw",
    "软件开发": "ruanti-tw",
    "互联网": "hulianwang wanglu-tw",
    "互联网安全": "wanglu-tw | boke",
    "博客": "buluoge-tw boke | paris",
    "北京奥运会": "aoyun | panama",
    "奥运会": "aoyun | panama",
    "数据库": "shujuku/shujuku-tw",
    "数据库索引": "shujuku",
    "金融危机": "jingrong | yinhang",
    "台北美食": "taibei-tw",
    # traditional, which matches the simplified
    "軟體": "ruanti-tw ruanjian yingjian | dongwu-tw",
    "自由軟體": "ruanjian | dongwu-tw",
    "網際網路": "hulianwang wanglu-tw",
    "部落格": "buluoge-tw boke",
    "資料庫 設計": "shujuku-tw",
    "資料庫": "shujuku/shujuku-tw",
    "臺北": "taibei-tw | tokyo",
    "軟體動物": "dongwu-tw | ruanjian",
    # Japanese
    "検索エンジン": "kensaku jidousha",
    "検索のエンジン": "kensaku jidousha",
    "ｴﾝｼﾞﾝ": "jidousha kensaku | search",
    "東京都": "tokyo | kyoto",
    "東京 観光": "tokyo kyoto",
    "京都": "kyoto | haus",
    "データベース": "deta | database",
    "日本料理": "ryouri",
    # German
    "Haus": "haus maus",
    "Häuser": "haus maus",
    "haeuser OR hauser": "haus",
    "Suchmaschine": "suche | maschine",
    "strassen münchen": "strasse",
    "Bücher Garten": "buecher garten",
    "Bücher über den Garten": "buecher garten",
    "gärtner": "garten buecher",
}


def documents():
    """Yield the pages as documents that differ only in texts and dates."""
    for number, (name, (lang, title, content)) in enumerate(PAGES.items()):
        host = f"{lang.lower()}.example.org"
        yield doc(
            f"org.example.{lang.lower()}:http/{name}",
            url=f"http://{host}/{name[:2]}",
            host=host,
            title=title,
            content=f"{content} {_FILLER[lang]}",
            lang=lang.partition("-")[0],
            type="text/html",
            tstamp=f"202{number % 4}-0{number % 9 + 1}-01T00:00:00Z",
        )


def name_of(document_id):
    """Return the name of a page."""
    return document_id.rpartition("/")[2]


def wrong(found_by):
    """Return the deviations from the suite. ``found_by``: query -> ids of hits, the best first."""
    errors = []
    for query, expected in QUERIES.items():
        first, _, never = expected.partition("|")
        found = [name_of(each) for each in found_by(query)]
        wanted = [alike.split("/") for alike in first.split()]
        order = [name for alike in wanted for name in sorted(alike, key=lambda name: [*found, name].index(name))]
        if [name for name in found if name in order] != order or found[0] not in wanted[0]:
            errors.append(f"{query}: {found}, not {first}")
        last = max(map(found.index, order)) if set(order) <= set(found) else len(found)
        errors += [f"{query}: {name} is found before {first}" for name in never.split() if name in found[:last]]
    return errors
