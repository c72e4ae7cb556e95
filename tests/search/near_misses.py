"""Pages about eight subjects of 2008 and 2009, and pages that nearly match them, as queries for every index.

Each of ``QUERIES`` has its own page. Other pages mention the subject, or contain its characters or parts of its words
without the subject itself. Only the texts differ: weights, dates and sites are equal.
"""

from tests.indexer.pages import doc

PAGES = {
    "beijing": ("北京奥运会", "北京奥运会在鸟巢开幕，北京奥运会的吉祥物是福娃。各国运动员为金牌而来。"),
    "crisis": ("金融危机", "金融危机席卷各国，银行倒闭。金融危机之后，失业的人多了起来。"),
    "obama": ("奥巴马", "奥巴马当选美国总统。奥巴马在芝加哥向支持者致谢。"),
    "films": ("香港电影金像奖", "香港电影金像奖颁奖，叶问获得最佳电影。香港电影金像奖由影评人投票。"),
    "boao": ("博鳌亚洲论坛", "博鳌亚洲论坛在海南召开年会，博鳌亚洲论坛的嘉宾来自各国。"),
    "flu": ("猪流感病毒", "猪流感病毒在墨西哥传播，医生研究猪流感病毒的疫苗。"),
    "rockets": ("火箭季后赛直播", "火箭季后赛直播：姚明带领火箭打湖人，今晚有季后赛直播。"),
    "snooker": ("斯诺克世锦赛", "斯诺克世锦赛在谢菲尔德举行，丁俊晖参加斯诺克世锦赛。"),
    # The same characters in other subjects.
    "panama": ("巴拿马", "巴拿马运河连接两个大洋，巴拿马的船很多。"),
    "austria": ("奥地利", "奥地利的马会在维也纳，巴士到北边的会场。京剧团也来了。"),
    "characters": ("字", "会 奥 运 京 北 马 巴 机 危 融 金 坛 论 洲 亚 毒 病 猪"),
    "meeting": ("会", "会议在京召开，委员会开会。"),
    "deep": ("深奥", "深奥的道理，奥秘无穷。"),
    "money": ("金", "融化的金子很危险，机器也坏了。"),
    "pig": ("养猪", "农民养猪，流水线上的感应器坏了，电脑中了病毒。"),
    "rocket": ("长征火箭", "长征火箭把卫星送入太空，电视台做了直播。"),
    "cinema": ("香港美食", "香港的茶餐厅，金像大厦旁边有一家电影院。"),
    "forum": ("技术论坛", "程序员的论坛，亚洲用户很多。"),
    "snooker_bar": ("台球", "斯诺克球桌出售。"),
    "athletics": ("田径", "田径世锦赛在柏林举行，博尔特打破世界纪录。"),
    # Pages that mention the subjects.
    "olympics_history": (
        "奥运会历史",
        "奥运会从雅典开始。" + "每四年举行一次，城市轮流承办。" * 5 + "2008年轮到北京奥运会。",
    ),
    "economy": ("经济新闻", "股市下跌。" + "专家谈论就业、房价和出口的前景。" * 5 + "有人说金融危机还没有过去。"),
}
QUERIES = {
    "北京奥运会": "beijing",
    "金融危机": "crisis",
    "奥巴马": "obama",
    "香港电影金像奖": "films",
    "博鳌亚洲论坛": "boao",
    "猪流感病毒": "flu",
    "火箭季后赛直播": "rockets",
    "斯诺克世锦赛": "snooker",
}
"""Query -> the page that must be first."""

MENTIONED = {"北京奥运会": {"olympics_history"}, "金融危机": {"economy"}}
"""Query -> other pages, which come before near misses."""


def documents():
    """Yield the pages as documents."""
    for number, (name, (title, content)) in enumerate(sorted(PAGES.items())):
        yield doc(
            f"cn.example.www:http/{name}", url=f"http://www.example.cn/{number}", host="www.example.cn", title=title,
            content=content, lang="zh", digest=f"{number:032x}", boost="1.0", pagerank="1.0", batchId="b",
            tstamp="2009-06-01T00:00:00.000Z", type=["text/html", "text", "html"],
        )  # fmt: skip


def name_of(hit):
    """Return the name of the page that a hit is."""
    return hit.id.rpartition("/")[2]
