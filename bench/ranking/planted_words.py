"""Words of the generated web in two languages: a topic is a first and a second word, text uses the others."""

_ENGLISH = """the of and a to in is was for that with on as by it from at are this be were an which or has had its after
one new first also two their can other more time when people many year some most there between later during early local
public large small open part known made found used called built long high number area world state work group history
report visit story letter question answer house water light stone wood road street village north south east west spring
summer autumn evening morning children teacher student doctor farmer writer reader friend family company council member
office paint colour weather travel ticket price season plan idea hope change order place"""
_CHINESE = """我们 他们 可以 没有 这个 因为 所以 但是 如果 已经 开始 时候 今天 昨天 明天 问题 方法 工作 生活 学习 朋友
老师 学生 孩子 家庭 公司 社会 国家 世界 历史 文化 故事 消息 报告 计划 时间 地方 春天 夏天 秋天 早上 晚上 天气 颜色 价格
道路 房子 水果 医生 农民 作者 读者 变化 发展 经济 科学 技术 北方 南方 东部 西部 主要 重要 很多 一些 非常 其中 以后 之前
可能 需要"""
FILLER = {"en": _ENGLISH.split(), "zh": _CHINESE.split()}
FIRST = {
    "en": ("copper", "river", "winter", "garden", "mountain", "harbour", "paper", "glass"),
    "zh": ("山区", "城市", "海洋", "冬季", "古代", "民间", "数字", "乡村"),
}
SECOND = {
    "en": ("bridge", "market", "lantern", "festival", "workshop", "orchard", "railway", "museum"),
    "zh": ("桥梁", "市场", "灯笼", "建筑", "铁路", "博物馆", "音乐", "陶瓷"),
}
NEUTRAL = {"en": ("source", "via", "here", "the original"), "zh": ("原文", "来源", "点这里", "链接")}
"""Link texts of citations, without words of queries."""
SAID = {
    "en": ("About {}", "{} in detail", "Notes, {} and more", "Where {} is mentioned", "Links: {}"),
    "zh": ("{}概况", "{}详解", "随笔：{}等", "提到{}的地方", "{}链接"),
}
"""Titles: official page, other page, page with a section, mention, list of a portal."""
